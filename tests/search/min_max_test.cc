#include "planner/search/cuts/min_max.h"

#include <gtest/gtest.h>

#include <random>

namespace pfeife {
namespace {

Layers random_times(std::mt19937& random, std::size_t count) {
  Layers layers;
  for (std::size_t l = 0; l < count; ++l) {
    Layer layer;
    layer.times = {
        {Nanoseconds{random() % 20}, Nanoseconds{random() % 20}, Nanoseconds{random() % 5}, {}},
        {Nanoseconds{random() % 30}, Nanoseconds{random() % 10}, Nanoseconds{random() % 5}, {}}};
    if (random() % 4 == 0) layer.no_cut_after = "in-place pair";
    layers.layers.push_back(layer);
  }
  return layers;
}

/// Every legal partition, by recursion.
void all_partitions(const Layers& layers, std::size_t stages, Partition& cuts,
                    const std::function<void(const Partition&)>& visit) {
  if (cuts.cuts.size() + 1 == stages) return visit(cuts);
  const int first = cuts.cuts.empty() ? 0 : cuts.cuts.back() + 1;
  for (int c = first; c + 1 < static_cast<int>(layers.size()); ++c) {
    if (!layers.layers[static_cast<std::size_t>(c)].no_cut_after.empty()) continue;
    cuts.cuts.push_back(c);
    all_partitions(layers, stages, cuts, visit);
    cuts.cuts.pop_back();
  }
}

TEST(MinMax, EqualsBruteForceOnRandomLayersWithTwoDeviceKindsAndIllegalCuts) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 1 + random() % 9, stages = 1 + random() % 4;
    const Layers layers = random_times(random, count);
    Cluster cluster = uniform_cluster(stages, DeviceKind{}, {1e9}, Nanoseconds{1});
    cluster.kinds.push_back(DeviceKind{});
    for (std::size_t d = 0; d < stages; ++d) cluster.kind_of_device[d] = random() % 2;
    const Placement placement = round_robin(stages, stages);
    const LayerSums sums(layers, cluster);
    const auto largest = [&](const Partition& p) {
      std::int64_t most = 0;
      for (std::size_t s = 0; s < stages; ++s)
        most = std::max(most, sums.time(cluster.kind_of_device[s], p.begin(s), p.end(s, count)));
      return most;
    };
    std::optional<Partition> best;
    Partition start;
    all_partitions(layers, stages, start, [&](const Partition& p) {
      if (!best || largest(p) < largest(*best)) best = p;
    });
    const std::optional<Partition> found = equal_time_cuts(layers, placement, cluster);
    ASSERT_EQ(found.has_value(), best.has_value()) << round;
    if (!found) continue;
    EXPECT_EQ(illegal_because(layers, *found), "");
    EXPECT_EQ(largest(*found), largest(*best)) << round;
    if (stages > 1) {
      EXPECT_EQ(found->cuts[0], best->cuts[0]) << round;
    }
  }
}

}  // namespace
}  // namespace pfeife
