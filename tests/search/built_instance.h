// Small random problems for schedules whose order is built for the costs.
#pragma once

#include "tests/search/random_problem.h"

namespace pfeife {

/// A random model, to be run in orders that are built for its costs.
struct BuiltInstance {
  Layers layers;
  Cluster cluster;
  std::size_t ranks, microbatches;
  std::vector<Bytes> memory_limit;

  ScheduleSpec built(std::size_t stages_per_rank) const {
    return {"zb_greedy", ranks, microbatches, stages_per_rank, {}, {}};
  }
  ScheduleSpec folded() const { return {"zbv_greedy", ranks, microbatches, 2, {}, {}}; }
  Problem problem(std::vector<ScheduleSpec> schedules) const {
    Problem p{.layers = layers, .cluster = cluster, .schedules = std::move(schedules)};
    for (std::size_t r = 0; r < ranks; ++r)
      p.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    p.memory_limit = memory_limit;
    return p;
  }
};
/// Two or three ranks of two kinds, up to five microbatches.
inline BuiltInstance random_built_instance(std::mt19937& random, std::size_t layers, bool tight) {
  BuiltInstance instance;
  RandomShape shape;
  shape.layers = layers;
  instance.layers = random_layers(random, shape);
  instance.ranks = 2 + random() % 2, instance.microbatches = 1 + random() % 5;
  instance.cluster = random_cluster(random, instance.ranks, true);
  for (std::size_t r = 0; r < instance.ranks; ++r)
    instance.memory_limit.emplace_back(tight ? 1500 + random() % 8000 : 1 << 30);
  return instance;
}

}  // namespace pfeife
