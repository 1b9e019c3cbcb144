#include "planner/cost/operators/aliasing.h"

#include <algorithm>

#include "planner/ir/model/arguments.h"

namespace pfeife {

bool contiguous(const TensorType& type) {
  std::int64_t expected = 1;
  for (std::size_t d = type.sizes.size(); d-- > 0;) {
    if (type.sizes[d] != 1 && type.strides[d] != expected) return false;
    expected *= type.sizes[d];
  }
  return true;
}

std::int64_t extent_from_back(const TensorType& type, std::size_t i) {
  if (i > type.sizes.size()) return 1;
  return std::max<std::int64_t>(type.sizes[type.sizes.size() - i], 1);
}

bool same_layout(const TensorType& a, const TensorType& b) {
  if (a.sizes != b.sizes) return false;
  for (std::size_t d = 0; d < a.sizes.size(); ++d)
    if (a.sizes[d] != 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

bool viewable(const TensorType& from, const std::vector<std::int64_t>& sizes) {
  if (from.elements() == 0 || from.sizes.empty()) return true;
  // Walk both shapes from the back: each run of dimensions that lie in one another must hold whole
  // new dimensions.
  std::size_t next = sizes.size();
  std::int64_t run = 1, base = from.strides.back();
  for (std::size_t d = from.sizes.size(); d-- > 0;) {
    run *= from.sizes[d];
    const bool ends = d == 0 || (from.sizes[d - 1] != 1 && from.strides[d - 1] != run * base);
    if (!ends) continue;
    std::int64_t covered = 1;
    while (next > 0 && (covered < run || sizes[next - 1] == 1)) covered *= sizes[--next];
    if (covered != run) return false;
    if (d > 0) base = from.strides[d - 1], run = 1;
  }
  return next == 0;
}

namespace {

bool shares(const Graph& graph, const Node& node, Memory memory, ValueId input,
            const std::vector<DType>& types) {
  const TensorType& from = graph.value(input).type;
  const TensorType& to = graph.value(node.outputs.front()).type;
  switch (memory) {
    case Memory::View:
    case Memory::InPlace:
      return true;
    case Memory::ViewIfFits:
      return viewable(from, to.sizes);
    case Memory::ViewIfSame:
      return types[input.index()] == types[node.outputs.front().index()] && same_layout(from, to) &&
             !flag_argument(node, "copy", false);
    case Memory::ViewIfIdle:
      return number_argument(node, "p", 0.5) == 0 || !flag_argument(node, "train", true);
    case Memory::Fresh:
      return false;
  }
  return false;
}

Memory memory_of(const Node& node, const OperatorTraits* traits) {
  if (traits != nullptr) return traits->memory;
  return node.op.ends_with('_') && !node.op.ends_with("__") ? Memory::InPlace : Memory::Fresh;
}

/// Norms of channels write into buffers that their schema calls inputs.
bool updates_statistics(const Node& node) {
  return node.op.find("batch_norm") != std::string::npos
             ? flag_argument(node, "training", false)
             : node.op == "aten::instance_norm" && flag_argument(node, "use_input_stats", true);
}

/// Every tensor of a list goes with the output of the same number, otherwise all with the first.
ValueId viewed(const std::vector<ValueId>& inputs, std::size_t output, const Node& node) {
  const bool listed = !node.arguments.empty() &&
                      std::holds_alternative<std::vector<ValueId>>(node.arguments.front().value);
  return listed && output < inputs.size() ? inputs[output] : inputs.front();
}

}  // namespace

Aliasing aliasing(const Graph& graph, const std::vector<const OperatorTraits*>& traits,
                  const std::vector<DType>& types) {
  Aliasing result;
  result.storage.reserve(graph.values.size());
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    result.storage.emplace_back(static_cast<std::int64_t>(v));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const NodeId id{n};
    if (const ValueId out = tensor_argument(node, "out"); out != kNoValue) {
      result.writes.push_back({id, result.storage[out.index()]});
      for (const ValueId output : node.outputs)
        result.storage[output.index()] = result.storage[out.index()];
      continue;
    }
    const Memory memory = memory_of(node, traits[n]);
    if (memory == Memory::Fresh) {
      if (updates_statistics(node))
        for (const char* running : {"running_mean", "running_var"})
          if (const ValueId buffer = tensor_argument(node, running); buffer != kNoValue)
            result.writes.push_back({id, result.storage[buffer.index()]});
      continue;
    }
    const std::vector<ValueId> inputs = inputs_of(node);
    if (inputs.empty()) continue;
    if (memory == Memory::InPlace) {
      const auto* list = std::get_if<std::vector<ValueId>>(&node.arguments.front().value);
      for (const ValueId written : list ? *list : std::vector{inputs.front()})
        result.writes.push_back({id, result.storage[written.index()]});
    }
    if (node.outputs.empty() || !shares(graph, node, memory, inputs.front(), types)) continue;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      result.storage[node.outputs[i].index()] = result.storage[viewed(inputs, i, node).index()];
  }
  return result;
}

}  // namespace pfeife
