#include "planner/search/cuts/min_max.h"

#include <algorithm>
#include <limits>

namespace pfeife {

std::optional<Partition> min_max_partition(const Layers& layers, std::size_t stages,
                                           const StageLoad& load) {
  const std::size_t n = layers.size();
  if (stages == 0 || stages > n) return std::nullopt;
  std::vector<std::size_t>
      ends;  // legal ends of a stage: one past a layer after which the model may be cut
  for (std::size_t l = 0; l + 1 < n; ++l)
    if (layers.layers[l].no_cut_after.empty()) ends.push_back(l + 1);

  // best[i] = smallest largest load of the stages [s, stages) that cover layers [i, n);
  // choice[s][i] = end of stage s. Built from the last stage backwards, so that the smallest cut
  // wins a tie.
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> best(n + 1, kNever), next(n + 1, kNever);
  std::vector<std::vector<std::size_t>> choice(stages, std::vector<std::size_t>(n + 1, n));
  std::vector<std::size_t> begins{0};
  begins.insert(begins.end(), ends.begin(), ends.end());
  for (const std::size_t i : begins) next[i] = load(stages - 1, i, n).value_or(kNever);
  for (std::size_t s = stages - 1; s-- > 0;) {
    std::fill(best.begin(), best.end(), kNever);
    std::size_t guess = 0;  // the end that was best for the begin before
    for (const std::size_t i : begins) {
      if (s == 0 && i != 0) break;
      // What the guess reaches is enough: no load need be asked for where the rest has more.
      double enough = kNever;
      if (guess > i)
        if (const std::optional<double> stage_load = load(s, i, guess))
          enough = std::max(*stage_load, next[guess]);
      for (auto end = std::upper_bound(ends.begin(), ends.end(), i); end != ends.end(); ++end) {
        if (next[*end] > enough || next[*end] >= best[i]) continue;
        const std::optional<double> stage_load = load(s, i, *end);
        if (!stage_load || *stage_load > enough || *stage_load >= best[i])
          break;  // loads only grow from here
        best[i] = std::max(*stage_load, next[*end]), choice[s][i] = *end;
      }
      if (best[i] < kNever) guess = choice[s][i];
    }
    std::swap(best, next);
  }
  if (next[0] == kNever) return std::nullopt;
  Partition partition;
  std::size_t at = 0;
  for (std::size_t s = 0; s + 1 < stages; ++s) {
    at = choice[s][at];
    partition.cuts.push_back(static_cast<std::int32_t>(at) - 1);
  }
  return partition;
}

std::optional<Partition> cuts_by_share(const Layers& layers, std::size_t stages,
                                       const std::function<double(std::size_t)>& load) {
  double total = 0, sum = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) total += load(l);
  Partition cuts;
  for (std::size_t l = 0; l + 1 < layers.size() && cuts.stages() < stages; ++l) {
    sum += load(l);
    const double share = total * static_cast<double>(cuts.stages()) / static_cast<double>(stages);
    if (sum >= share && layers.layers[l].no_cut_after.empty())
      cuts.cuts.push_back(static_cast<std::int32_t>(l));
  }
  if (cuts.stages() < stages) return std::nullopt;
  return cuts;
}

LayerSums::LayerSums(const Layers& layers, const Cluster& cluster)
    : time_(cluster.kinds.size(), std::vector<std::int64_t>(layers.size() + 1, 0)) {
  for (std::size_t kind = 0; kind < time_.size(); ++kind)
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const LayerTimes& t = layers.layers[l].times.at(kind);
      time_[kind][l + 1] =
          time_[kind][l] + (t.forward + t.backward_input + t.backward_weight).count();
    }
}

std::optional<Partition> equal_time_cuts(const Layers& layers, const Placement& placement,
                                         const Cluster& cluster) {
  const LayerSums sums(layers, cluster);
  return min_max_partition(
      layers, placement.stages(),
      [&](std::size_t s, std::size_t begin, std::size_t end) -> std::optional<double> {
        const DeviceId device = placement.device(StageId{s});
        return static_cast<double>(sums.time(cluster.kind_of_device[device.index()], begin, end));
      });
}

}  // namespace pfeife
