#include "planner/cost/operators/running_types.h"

#include <algorithm>

#include "planner/ir/model/arguments.h"

namespace pfeife {

std::optional<DType> narrow_type(Precision precision) {
  if (precision == Precision::Bf16Amp) return DType::BFloat16;
  if (precision == Precision::Fp16Amp) return DType::Float16;
  return std::nullopt;
}

namespace {

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

}  // namespace

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

}  // namespace pfeife
