#include "planner/cost/estimate/reference_memory.h"

#include <algorithm>

namespace pfeife {

std::vector<Bytes> largest_temporaries(const Layers& layers, const Partition& partition) {
  std::vector<Bytes> largest(partition.stages(), Bytes{0});
  for (std::size_t s = 0; s < largest.size(); ++s)
    for (std::size_t l = partition.begin(s); l < partition.end(s, layers.size()); ++l)
      largest[s] = std::max(largest[s], layers.layers[l].temporary.largest());
  return largest;
}

/// From the description in the paper's section on memory.
MemoryCurve reference_memory(const Schedule& lowered, RankId rank, const StageCosts& costs,
                             const Placement& placement, const std::vector<Bytes>& temporary) {
  const auto n = static_cast<std::int64_t>(microbatch_count(lowered));
  MemoryCurve curve;
  for (std::size_t s = 0; s < costs.stages.size(); ++s)
    if (placement.rank_of_stage[s] == rank)
      curve.fixed += 4 * costs.stages[s].parameters + n * costs.stages[s].model_input;
  for (const StagePair& pair : costs.pairs) {
    if (placement.rank(pair.to) == rank) curve.fixed += 3 * n * pair.bytes;
    if (placement.rank(pair.from) == rank) curve.fixed += 2 * n * pair.bytes;
  }
  Bytes now = curve.fixed;
  for (const Cell& cell : lowered.rows[rank.index()]) {
    Bytes highest = now;
    for_each_action(cell, [&](const Action& action) {
      const StageCost& stage = costs.stages[action.stage.index()];
      const Bytes within = temporary[action.stage.index()] + stage.recomputed;
      if (action.op == Op::Forward) {
        highest = std::max(highest, now + stage.saved + within);
        now += stage.saved;
      } else if (makes_input_gradient(action.op)) {
        highest = std::max(highest, now + within);
        now -= stage.saved;
      }
    });
    curve.steps.push_back({std::max(highest, now), now});
  }
  return curve;
}

std::vector<Bytes> reference_peak_memory(const Schedule& lowered, const StageCosts& costs,
                                         const Placement& placement,
                                         const std::vector<Bytes>& temporary) {
  std::vector<Bytes> peaks;
  for (std::size_t r = 0; r < lowered.ranks(); ++r)
    peaks.push_back(reference_memory(lowered, RankId{r}, costs, placement, temporary).peak());
  return peaks;
}

}  // namespace pfeife
