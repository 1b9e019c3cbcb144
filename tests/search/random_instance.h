// Whole random planning problems, small enough for brute force over all cuts.
#pragma once

#include "tests/search/random_problem.h"

namespace pfeife {

/// A random model on random devices, with random memory limits in half the cases; `schedules` of
/// the grid of all families.
struct Instance {
  Layers layers;
  Cluster cluster;
  std::vector<ScheduleSpec> schedules;
  std::vector<Bytes> memory_limit;
  Recompute recompute = Recompute::None;
  StepNorm norm = StepNorm::None;

  Problem problem() const {
    Problem p{.layers = layers, .cluster = cluster, .schedules = schedules};
    for (std::size_t r = 0; r < memory_limit.size(); ++r)
      p.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    p.memory_limit = memory_limit, p.recompute = recompute, p.norm = norm;
    return p;
  }
};
inline Instance random_instance(std::mt19937& random, std::size_t schedules,
                                double skip_share = 0.5) {
  Instance instance;
  RandomShape shape;
  shape.skip_share = skip_share;
  shape.layers = 5 + random() % 6;
  instance.layers = random_layers(random, shape);
  const std::size_t ranks = 1 + random() % 3, microbatches = 1 + random() % 5;
  instance.cluster = random_cluster(random, ranks, true);
  for (std::size_t k = 0; k < schedules; ++k) {
    const ScheduleSpec spec = random_spec(random, ranks, microbatches, {1, 2, 3});
    if (std::ranges::find(instance.schedules, spec) == instance.schedules.end())
      instance.schedules.push_back(spec);
  }
  for (std::size_t r = 0; r < ranks; ++r)
    instance.memory_limit.emplace_back(random() % 2 ? 1 << 30 : 1500 + random() % 9000);
  return instance;
}

}  // namespace pfeife
