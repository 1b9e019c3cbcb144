#include "planner/cost/operators/recurrent.h"

#include <algorithm>

#include "planner/ir/model/arguments.h"

namespace pfeife {
namespace {

/// Weights in the order of the operator: of each layer and direction that of the input, that of the
/// hidden state, and the projection.
std::vector<ValueId> matrices(const Graph& graph, const Node& node) {
  std::vector<ValueId> found;
  const auto add = [&](ValueId v) {
    if (v != kNoValue && graph.value(v).type.sizes.size() == 2) found.push_back(v);
  };
  for (const char* name : {"w_ih", "w_hh"}) add(tensor_argument(node, name));
  if (const Argument* list = node.find("params"))
    if (const auto* values = std::get_if<std::vector<ValueId>>(&list->value))
      for (const ValueId v : *values) add(v);
  return found;
}

std::int64_t steps_of(const Graph& graph, const Node& node, const TensorType& input) {
  if (node.find("params") == nullptr) return 1;  // a cell
  if (const ValueId sizes = tensor_argument(node, "batch_sizes"); sizes != kNoValue)
    return graph.value(sizes).type.elements();
  const bool batch_first = input.sizes.size() > 2 && flag_argument(node, "batch_first", false);
  return input.sizes.empty() ? 1 : input.sizes[batch_first ? 1 : 0];
}

}  // namespace

RecurrentShape recurrent_shape(const Graph& graph, const Node& node) {
  RecurrentShape shape;
  ValueId input = tensor_argument(node, "input");
  if (input == kNoValue) input = tensor_argument(node, "data");
  if (input == kNoValue || node.outputs.empty()) return shape;
  const TensorType& type = graph.value(input).type;
  shape.rows =
      type.sizes.empty() || type.sizes.back() == 0 ? 0 : type.elements() / type.sizes.back();
  shape.steps = std::max<std::int64_t>(steps_of(graph, node, type), 1);
  shape.gates = node.op.find("lstm") != std::string::npos  ? 4
                : node.op.find("gru") != std::string::npos ? 3
                                                           : 1;
  const std::vector<ValueId> weights = matrices(graph, node);
  const bool both = flag_argument(node, "bidirectional", false);
  shape.directions = both ? 2 : 1;
  const auto layers = static_cast<std::size_t>(number_argument(node, "num_layers", 1));
  const std::size_t cells = std::max<std::size_t>(layers, 1) * (both ? 2 : 1);
  const std::size_t each = weights.size() / cells;
  if (each < 2) return shape;
  for (std::size_t c = 0; c < cells; ++c) {
    RecurrentShape::Cell cell;
    cell.from_input = weights[c * each];
    cell.every_step.assign(weights.begin() + static_cast<std::ptrdiff_t>(c * each + 1),
                           weights.begin() + static_cast<std::ptrdiff_t>((c + 1) * each));
    const TensorType& first = graph.value(cell.from_input).type;
    cell.width = first.sizes.empty() ? 0 : first.sizes[0] / shape.gates;
    cell.reads_input = c < (both ? 2U : 1U);
    shape.cells.push_back(std::move(cell));
  }
  return shape;
}

}  // namespace pfeife
