#include "planner/cost/operators/table_effects.h"

#include "planner/cost/operators/operators.h"
#include "planner/ir/model/arguments.h"

namespace pfeife {
namespace {

bool ends_in_place(const std::string& op) { return op.ends_with('_') && !op.ends_with("__"); }

/// Norms of channels write into buffers that their schema calls inputs.
void add_statistics(const Node& node, NodeEffects& effects) {
  if (node.op.find("batch_norm") == std::string::npos && node.op != "aten::instance_norm") return;
  for (const char* running : {"running_mean", "running_var"})
    if (const ValueId buffer = tensor_argument(node, running); buffer != kNoValue)
      effects.writes.push_back(buffer);
}

NodeEffects effects_of_row(const Node& node, const OperatorTraits* traits) {
  NodeEffects effects;
  effects.random = draws_random_numbers(node, traits);
  effects.metadata_only = traits != nullptr && traits->metadata_only;
  add_statistics(node, effects);
  Memory memory = ends_in_place(node.op) ? Memory::InPlace : Memory::Fresh;
  if (traits != nullptr) memory = traits->memory;
  if (const ValueId out = tensor_argument(node, "out"); out != kNoValue) {
    effects.writes.push_back(out);
    for (const ValueId output : node.outputs) effects.aliases.emplace_back(out, output);
  }
  const std::vector<ValueId> inputs = inputs_of(node);
  if (inputs.empty() || memory == Memory::Fresh) return effects;
  if (memory == Memory::ViewIfIdle && effects.random) return effects;
  const auto* list = std::get_if<std::vector<ValueId>>(&node.arguments.front().value);
  const bool listed = list != nullptr;
  if (memory == Memory::InPlace && listed)
    effects.writes.insert(effects.writes.end(), list->begin(), list->end());
  else if (memory == Memory::InPlace)
    effects.writes.push_back(inputs.front());
  // Each tensor of a list goes with the output of its number.
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    effects.aliases.emplace_back(listed && i < inputs.size() ? inputs[i] : inputs.front(),
                                 node.outputs[i]);
  return effects;
}

}  // namespace

std::vector<NodeEffects> table_effects(const Graph& graph) {
  std::vector<NodeEffects> effects;
  effects.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes)
    effects.push_back(effects_of_row(node, find_operator(node.op)));
  return effects;
}

}  // namespace pfeife
