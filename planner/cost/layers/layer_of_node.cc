#include "planner/cost/layers/layer_of_node.h"

#include <algorithm>

namespace pfeife {
namespace {

/// [node] true if it writes into what an earlier node made: no cut can lie before it.
std::vector<bool> changes_result(const GraphFacts& facts) {
  std::vector<bool> changes(facts.graph.nodes.size(), false);
  for (const Aliasing::Write& write : facts.aliases.writes)
    if (facts.graph.value(write.storage).role == ValueRole::Intermediate)
      changes[write.node.index()] = true;
  return changes;
}

/// Layers of the nodes that are not local, and of the others by their position.
NodeLayers by_position(const GraphFacts& facts, const std::vector<bool>& local,
                       const std::vector<bool>& grows) {
  const std::vector<bool> changes = changes_result(facts);
  NodeLayers layers;
  std::size_t open = 0;
  bool just_closed = false;
  for (std::size_t n = 0; n < local.size(); ++n) {
    const bool joins = just_closed && changes[n] && !local[n];
    layers.layer.push_back(joins ? open - 1 : open);
    if (local[n] || joins) continue;
    just_closed = grows[n];
    if (grows[n]) ++open;
  }
  layers.count = open + 1;
  return layers;
}

}  // namespace

NodeLayers layer_of_node(const GraphFacts& facts, const std::vector<bool>& local,
                         const std::vector<bool>& grows) {
  NodeLayers layers = by_position(facts, local, grows);
  const std::size_t never = layers.count;
  // First layer in which a value, or any value of a storage, is needed by a later node.
  std::vector<std::size_t> value(facts.graph.values.size(), never), storage = value;
  for (std::size_t n = local.size(); n-- > 0;) {
    const NodeId id{n};
    const OperatorTraits* row = facts.traits[n];
    if (local[n]) {
      std::size_t first = never;
      for (const ValueId v : facts.node(id).outputs) {
        first = std::min(first, value[v.index()]);
        if (row->memory == Memory::InPlace)
          first = std::min(first, storage[facts.storage(v).index()]);
      }
      if (first != never) layers.layer[n] = first;
    }
    if (row != nullptr && row->metadata_only) continue;
    for (const ValueId v : facts.inputs(id)) {
      value[v.index()] = std::min(value[v.index()], layers.layer[n]);
      std::size_t& root = storage[facts.storage(v).index()];
      root = std::min(root, layers.layer[n]);
    }
  }
  return layers;
}

}  // namespace pfeife
