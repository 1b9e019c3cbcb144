#include <algorithm>

#include "planner/cost/layers/grouping_parts.h"

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

/// [node] what F adds to the kept bytes with it, and what B, I and W let go of with it. A storage
/// that an earlier layer saves, too, may stay with that one: it is left out.
std::vector<PassBytes> kept_with(const Graph& graph, const Profile& profile,
                                 const NodeLayers& layers) {
  std::vector<PassBytes> kept(graph.nodes.size());
  for (std::size_t n = 0; n < kept.size(); ++n) {
    const NodeProfile& cost = profile.nodes[n];
    kept[n] = {cost.saved, cost.saved, cost.saved, cost.weight_saved};
  }
  for (const SavedStorage& storage : profile.storages) {
    if (storage.savers.empty()) continue;
    const NodeId first = storage.savers.front();
    NodeId maker = first;
    if (const auto& producer = graph.value(storage.value).producer)
      maker = std::min(maker, *producer);
    if (layers.layer[maker.index()] == layers.layer[first.index()])
      kept[maker.index()].forward += storage.bytes;
    kept[first.index()].backward += storage.bytes;
    if (storage.weight_savers.empty())
      kept[first.index()].input += storage.bytes;
    else
      kept[storage.weight_savers.front().index()].weight += storage.bytes;
  }
  return kept;
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

std::vector<PassBytes> layer_temporary(const Graph& graph, const Profile& profile,
                                       const NodeLayers& layers) {
  const std::vector<PassBytes> kept = kept_with(graph, profile, layers);
  std::vector<PassBytes> found(layers.count), later(layers.count);
  std::vector<Bytes> not_yet(layers.count);  // what W will need of earlier nodes
  for (std::size_t n = 0; n < kept.size(); ++n)
    not_yet[layers.layer[n]] += profile.nodes[n].weight_saved;
  for (std::size_t n = kept.size(); n-- > 0;) {
    const std::size_t layer = layers.layer[n];
    const PassBytes& more = profile.nodes[n].temporary;
    PassBytes& past = later[layer];
    not_yet[layer] -= profile.nodes[n].weight_saved;
    found[layer] =
        larger(found[layer], {more.forward - past.forward, more.backward - past.backward,
                              more.input - past.input - not_yet[layer], more.weight - past.weight});
    past.forward += kept[n].forward, past.backward += kept[n].backward;
    past.input += kept[n].input, past.weight += kept[n].weight;
  }
  return found;
}

}  // namespace pfeife
