#include "planner/cost/layer_of_node.h"

#include <algorithm>

namespace pfeife {
namespace {

/// Layers of the nodes that are not local, and of the others by their position.
NodeLayers by_position(const std::vector<bool>& local, const std::vector<bool>& grows) {
  NodeLayers layers;
  std::size_t open = 0;
  for (std::size_t n = 0; n < local.size(); ++n) {
    layers.layer.push_back(open);
    if (!local[n] && grows[n]) ++open;
  }
  layers.count = open + 1;
  return layers;
}

}  // namespace

NodeLayers layer_of_node(const GraphFacts& facts, const std::vector<bool>& local,
                         const std::vector<bool>& grows) {
  NodeLayers layers = by_position(local, grows);
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
