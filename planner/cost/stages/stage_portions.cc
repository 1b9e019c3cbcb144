#include "planner/cost/stages/stage_portions.h"

#include <algorithm>

namespace pfeife {

double attention_share(const Layers& layers, std::size_t begin, std::size_t end) {
  double attention = 0, all = 0;
  for (std::size_t l = begin; l < end; ++l) {
    const LayerTimes& times = layers.layers[l].times.front();
    const auto time =
        static_cast<double>((times.forward + times.backward_input + times.backward_weight).count());
    all += time;
    attention += time * layers.sequence->attention[l];
  }
  return all > 0 ? std::min(1.0, attention / all) : 0;
}

std::vector<double> linear_shares(const Layers& layers, const Partition& partition) {
  std::vector<double> shares(partition.stages(), 1);
  for (std::size_t s = 0; s < shares.size() && layers.sequence; ++s)
    shares[s] = 1 - attention_share(layers, partition.begin(s), partition.end(s, layers.size()));
  return shares;
}

void expose_reductions(const Layers& layers, const Partition& partition,
                       const std::vector<StageCosts::Slice>& parts, StageCosts& costs) {
  for (std::size_t s = 0; s < costs.replicas.size(); ++s) {
    const StageCost& whole = costs.stages[s];
    double least = 1;
    for (const StageCosts::Slice& part : parts)
      if (whole.backward() > Nanoseconds{0})
        least = std::min(least, static_cast<double>(part.stages[s].backward().count()) /
                                    static_cast<double>(whole.backward().count()));
    std::vector<LayerReduction> reductions(
        layers.reductions.begin() + static_cast<std::ptrdiff_t>(partition.begin(s)),
        layers.reductions.begin() + static_cast<std::ptrdiff_t>(partition.end(s, layers.size())));
    for (LayerReduction& reduction : reductions)
      reduction.beside = Nanoseconds{
          static_cast<std::int64_t>(least * static_cast<double>(reduction.beside.count()))};
    ReplicaReduction& replicas = costs.replicas[s];
    const Nanoseconds all = replicas.beside + replicas.behind;
    replicas.behind = exposed_reduction(reductions, 0, reductions.size());
    replicas.beside = all - replicas.behind;
  }
}

}  // namespace pfeife
