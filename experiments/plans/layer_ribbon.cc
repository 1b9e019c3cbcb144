#include "experiments/plans/layer_ribbon.h"

#include "planner/ir/model/layer_title.h"

namespace pfeife {

Ribbon layer_ribbon(const Layers& layers, const Cluster& cluster, const Plan& plan) {
  Ribbon ribbon{.name = {}, .rank_of_stage = plan.placement.rank_of_stage, .layers = {}};
  for (std::size_t s = 0; s < plan.partition.stages(); ++s) {
    const std::size_t kind = cluster.kind_of_device[plan.placement.device(StageId{s}).index()];
    for (std::size_t l = plan.partition.begin(s); l < plan.partition.end(s, layers.size()); ++l) {
      const LayerTimes& times = layers.layers[l].times.at(kind);
      ribbon.layers.push_back({.name = layer_title(layers.layers[l]),
                               .stage = s,
                               .time = times.forward + times.backward_input + times.backward_weight,
                               .held = {},
                               .saved = layers.layers[l].saved});
    }
  }
  for (const LayerParameter& parameter : layers.parameters)
    if (!parameter.users.empty())
      ribbon.layers[parameter.users.front().index()].held +=
          parameter.bytes + parameter.gradient + parameter.state;
  for (const LayerStorage& storage : layers.storages)
    if (!storage.savers.empty())
      ribbon.layers[storage.savers.front().index()].saved += storage.bytes;
  return ribbon;
}

}  // namespace pfeife
