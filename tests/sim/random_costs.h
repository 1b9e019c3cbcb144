// Random stage costs with everything in them: unequal stages, skips, tied weights, one-way values.
#pragma once

#include <algorithm>
#include <random>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife::testing {

inline StageCosts random_costs(std::mt19937& random, std::size_t stages, bool skips, bool tied) {
  const auto some = [&](std::uint32_t most) { return Nanoseconds{random() % most}; };
  const auto some_bytes = [&] { return Bytes{static_cast<std::int64_t>(1 + random() % 50'000)}; };
  const auto stage = [](std::size_t s) { return StageId{s}; };
  StageCosts costs = uniform_costs(stages, {}, {}, {}, {});
  for (StageCost& cost : costs.stages) {
    cost.forward = some(1000);
    cost.backward_input = some(1500);
    cost.backward_weight = some(1000);
    cost.optimizer = some(300);
  }
  for (std::size_t from = 0; skips && from + 2 < stages; ++from)
    if (random() % 2 == 0) {
      const std::size_t to = from + 2 + random() % (stages - from - 2);
      costs.pairs.push_back({stage(from), stage(to), {}, {}, {}, {}, random() % 2 != 0});
    }
  std::ranges::sort(costs.pairs, {}, [](const StagePair& p) { return std::pair{p.from, p.to}; });
  for (StagePair& pair : costs.pairs) {
    pair.bytes = some_bytes();
    pair.gradient_bytes = pair.has_gradient ? some_bytes() : Bytes{0};
    pair.forward_time = some(800);
    pair.backward_time = pair.has_gradient ? some(800) : Nanoseconds{0};
  }
  if (tied && stages > 1)
    costs.reductions.push_back({{stage(0), stage(stages - 1)}, Bytes{1}, some(500)});
  if (random() % 2 == 0)
    for (std::size_t s = 0; s < stages; ++s) {
      const Nanoseconds beside = some(900), behind = some(900);
      const auto whole = static_cast<std::uint32_t>((beside + behind).count());
      costs.replicas.push_back({beside, behind, some(whole + 1)});
    }
  return costs;
}

/// Transfers take what the cluster says, stage s being on `placement`'s device.
inline void take_times_from(const Cluster& cluster, const Placement& placement, StageCosts& costs) {
  for (StagePair& pair : costs.pairs) {
    const DeviceId from = placement.device(pair.from), to = placement.device(pair.to);
    pair.forward_time = transfer_time(cluster.path(from, to), pair.bytes);
    pair.backward_time = pair.has_gradient
                             ? transfer_time(cluster.path(to, from), pair.gradient_bytes)
                             : Nanoseconds{0};
  }
}

}  // namespace pfeife::testing
