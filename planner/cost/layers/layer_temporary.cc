#include "planner/cost/layers/layer_temporary.h"

#include <algorithm>

namespace pfeife {
namespace {

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
