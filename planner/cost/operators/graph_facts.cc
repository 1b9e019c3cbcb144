#include "planner/cost/operators/graph_facts.h"

#include <algorithm>

#include "planner/cost/operators/contraction.h"
#include "planner/cost/operators/recurrent.h"
#include "planner/ir/model/arguments.h"

namespace pfeife {
namespace {

/// The 16-bit type of autocast; nothing without it.
std::optional<DType> narrow_type(Precision precision) {
  if (precision == Precision::Bf16Amp) return DType::BFloat16;
  if (precision == Precision::Fp16Amp) return DType::Float16;
  return std::nullopt;
}

/// True if all floating operands that decide the type of the result are narrow.
bool narrow_operands(const Graph& graph, const Node& node, const OperatorTraits* traits,
                     const std::vector<DType>& types, DType narrow) {
  if (traits != nullptr && traits->autocast == Autocast::First) {
    const ValueId first = first_tensor(node);
    return first != kNoValue && types[first.index()] == narrow;
  }
  bool any = false, all = true;
  for (const ValueId v : inputs_of(node)) {
    // A tensor without dimensions does not widen the result.
    if (!is_floating(types[v.index()]) || graph.value(v).type.sizes.empty()) continue;
    any = true;
    all = all && types[v.index()] == narrow;
  }
  return any && all;
}

/// [value] its type when the graph runs under `precision`, by the column Autocast of the operators
/// (`traits`, [node]); for Fp32 and Tf32 as written in the graph. Only what the graph says is
/// float32 changes; parameters, inputs and explicit types (`to`, `zeros`) stay. Linear.
std::vector<DType> running_types(const Graph& graph,
                                 const std::vector<const OperatorTraits*>& traits,
                                 Precision precision) {
  std::vector<DType> types;
  types.reserve(graph.values.size());
  for (const Value& value : graph.values) types.push_back(value.type.dtype);
  const std::optional<DType> narrow = narrow_type(precision);
  if (!narrow) return types;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.find("dtype") != nullptr) continue;  // a type written into the graph stays
    const Autocast rule = traits[n] ? traits[n]->autocast : Autocast::Widest;
    const bool becomes_narrow =
        rule == Autocast::Narrow ||
        (rule != Autocast::Wide && narrow_operands(graph, node, traits[n], types, *narrow));
    if (!becomes_narrow) continue;
    for (const ValueId v : node.outputs)
      if (types[v.index()] == DType::Float32) types[v.index()] = *narrow;
  }
  return types;
}

/// Whether the node names the tensors that the rules of its row read.
bool has_operands(const Graph& graph, const Node& node, OperatorWork work) {
  const auto has = [&](const char* name) { return tensor_argument(node, name) != kNoValue; };
  if (node.outputs.empty()) return false;
  switch (work) {
    case OperatorWork::Product:
    case OperatorWork::GroupedProduct:
    case OperatorWork::OtherProduct:
    case OperatorWork::Convolution:
    case OperatorWork::OtherConvolution:
      return factors_of(node).left != kNoValue && factors_of(node).right != kNoValue;
    case OperatorWork::Einsum:
      return inputs_of(node).size() == 1 || !contractions_of(graph, node).empty();
    case OperatorWork::Attention:
      return has("query") && has("key") && has("value");
    case OperatorWork::Recurrent:
      return !recurrent_shape(graph, node).cells.empty();
    case OperatorWork::LayerNorm:
    case OperatorWork::ChannelNorm:
    case OperatorWork::Lookup:
    case OperatorWork::Bag:
    case OperatorWork::Sort:
    case OperatorWork::Fourier:
      return first_tensor(node) != kNoValue;
    default:
      return true;
  }
}

/// nullptr also for a call that is none of the operator's schema.
const OperatorTraits* traits_of(const Graph& graph, const Node& node) {
  const OperatorTraits* row = find_operator(node.op);
  return row != nullptr && has_operands(graph, node, row->work) ? row : nullptr;
}

}  // namespace

GraphFacts::GraphFacts(const Graph& g, Precision precision)
    : graph(g), narrow(narrow_type(precision)) {
  traits.reserve(g.nodes.size());
  input_begin_.reserve(g.nodes.size() + 1);
  input_begin_.push_back(0);
  for (const Node& node : g.nodes) {
    traits.push_back(traits_of(g, node));
    const std::vector<ValueId> read = inputs_of(node);
    inputs_.insert(inputs_.end(), read.begin(), read.end());
    input_begin_.push_back(inputs_.size());
  }
  types = running_types(g, traits, precision);
  aliases = aliasing(g, traits, types);
}

const GraphFacts& FactsByPrecision::at(Precision precision) const {
  return facts_.try_emplace(narrow_type(precision), graph, precision).first->second;
}

std::vector<ValueId> GraphFacts::distinct_inputs(NodeId n) const {
  std::vector<ValueId> distinct;
  for (const ValueId v : inputs(n))
    if (std::ranges::find(distinct, v) == distinct.end()) distinct.push_back(v);
  return distinct;
}

bool GraphFacts::gives_gradient(NodeId n) const {
  return std::ranges::any_of(node(n).outputs, [&](ValueId v) { return needs_gradient(v); });
}

bool GraphFacts::is_view(NodeId n) const {
  const Node& call = node(n);
  if (call.outputs.empty() || storage(call.outputs.front()) == call.outputs.front()) return false;
  return traits[n.index()] != nullptr && traits[n.index()]->memory != Memory::InPlace;
}

Bytes GraphFacts::bytes(ValueId v) const {
  return type(v).elements() * element_size(types[v.index()]);
}

Bytes GraphFacts::read_bytes(ValueId v) const {
  const TensorType& tensor = type(v);
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d)
    if (tensor.strides[d] != 0 || tensor.sizes[d] == 0) elements *= tensor.sizes[d];
  return elements * element_size(types[v.index()]);
}

Bytes GraphFacts::input_bytes(NodeId n) const {
  Bytes sum;
  for (const ValueId v : distinct_inputs(n)) sum += read_bytes(v);
  return sum;
}

Bytes GraphFacts::output_bytes(NodeId n) const {
  Bytes sum;
  for (const ValueId v : node(n).outputs) sum += bytes(v);
  return sum;
}

std::optional<DType> GraphFacts::cast_type(NodeId n, ValueId v) const {
  const OperatorTraits* row = traits[n.index()];
  if (!narrow || row == nullptr) return std::nullopt;
  const DType now = types[v.index()];
  if (row->autocast == Autocast::Narrow && now == DType::Float32) return narrow;
  if (row->autocast == Autocast::Wide && now == *narrow) return DType::Float32;
  return std::nullopt;
}

/// matmul makes a matrix, or a batch of matrices with one batch dimension, of each operand; linear
/// likewise of its input.
bool GraphFacts::folds_by_copy(NodeId n, ValueId v) const {
  const TensorType& tensor = type(v);
  const std::size_t dims = tensor.sizes.size();
  if (dims < 3 || traits[n.index()]->work != OperatorWork::Product) return false;
  const ValueId left = factors_of(node(n)).left, right = factors_of(node(n)).right;
  const std::size_t other = type(v == left ? right : left).sizes.size();
  std::int64_t rest = 1;
  const std::size_t kept = other <= 2 ? 1 : 2;  // a matrix, or a batch of matrices
  for (std::size_t d = 0; d + kept < dims; ++d) rest *= tensor.sizes[d];
  std::vector<std::int64_t> folded{rest};
  folded.insert(folded.end(), tensor.sizes.end() - static_cast<std::ptrdiff_t>(kept),
                tensor.sizes.end());
  return !viewable(tensor, folded);
}

Bytes GraphFacts::operand_copy(NodeId n, ValueId v) const {
  const OperatorTraits* row = traits[n.index()];
  if (v == kNoValue || row == nullptr) return Bytes{0};
  const std::optional<DType> cast = cast_type(n, v);
  const bool laid_out_anew =
      folds_by_copy(n, v) ||
      (node(n).op == "aten::group_norm" && type(v).sizes.size() > 1 && !contiguous(type(v)));
  if (!cast && !laid_out_anew) return Bytes{0};
  return type(v).elements() * element_size(cast.value_or(types[v.index()]));
}

std::vector<NodeId> nodes_of(const Graph& graph) {
  std::vector<NodeId> nodes;
  nodes.reserve(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    nodes.emplace_back(static_cast<std::int64_t>(n));
  return nodes;
}

}  // namespace pfeife
