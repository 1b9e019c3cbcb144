// The device of each rank, against brute force: every order of the devices, every cut.
#include "planner/search/choices/device_search.h"

#include <gtest/gtest.h>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/search/choices/device_orders.h"
#include "tests/search/as_told.h"
#include "tests/search/device_instance.h"

namespace pfeife {
namespace {

SearchOptions few_moves() { return {.iterations = 30}; }

TEST(DeviceSearch, FindsTheBestOrderAndItsBoundHoldsForAll) {
  std::mt19937 random(11);
  int feasible = 0, proven = 0;
  for (int round = 0; round < 40; ++round) {
    const DeviceInstance instance = random_device_instance(random, 3);
    const Problem problem = instance.problem();
    std::optional<Nanoseconds> best;
    for_each_order(instance.devices(), [&](const DeviceOrder& order) {
      const Answer outcome = search(with_devices(problem, order), few_moves());
      if (!outcome.plans.empty())
        best = std::min(best.value_or(Nanoseconds::max()), outcome.plans[0].estimate);
    });
    const BestDevices found = search_devices({problem}, few_moves(), search);
    const Answer& outcome = found.found.outcome;
    ASSERT_EQ(outcome.plans.empty(), !best.has_value()) << round;
    proven += !best && outcome.infeasible && outcome.infeasible->proven;
    if (!best) continue;
    ++feasible;
    EXPECT_EQ(outcome.plans[0].estimate, *best) << round;
    EXPECT_LE(outcome.bound->time, *best) << round;
    // The plan is one of the order that is said to be best.
    const Problem& of_plan = found.problems[found.found.best];
    expect_as_told(of_plan, outcome.plans[0]);
    for (std::size_t r = 0; r < 3; ++r)
      EXPECT_LE(outcome.plans[0].peak_memory[r],
                instance.memory_limit[of_plan.device_of_rank[r].index()]);
  }
  EXPECT_GT(feasible, 15);
  EXPECT_GT(proven, 2);
}

TEST(DeviceSearch, FindsTheBridgesOfAScrambledClusterAgain) {
  // Eight devices of which 0-5, 1-3, 2-7 and 4-6 are bridged, in place of 0-1, 2-3, 4-5 and 6-7.
  const Cluster sorted = read_cluster(PFEIFE_SOURCE_DIR "/configs/clusters/3090_x8.yaml");
  const std::vector<std::size_t> was{0, 2, 4, 3, 6, 1, 7, 5};
  Cluster scrambled = sorted;
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b < 8; ++b)
      scrambled.paths[a * 8 + b] = sorted.paths[was[a] * 8 + was[b]];
  Layers layers;
  for (int l = 0; l < 32; ++l) {
    Layer layer;
    layer.name = "l" + std::to_string(l);
    layer.times = {{Nanoseconds{100'000}, Nanoseconds{100'000}, Nanoseconds{100'000}, {}}};
    layers.layers.push_back(layer);
    if (l < 31) {
      // Every other eighth of the model makes much that the next one reads.
      const Bytes bytes{l % 8 == 3 ? 40'000'000 : 4'000'000};
      layers.values.push_back({"v", LayerId{l}, {LayerId{l + 1}}, bytes, bytes, {}});
    }
  }
  DeviceOrder devices;
  for (int d = 0; d < 8; ++d) devices.emplace_back(d);
  const std::vector<ScheduleSpec> schedules{{"1f1b", 8, 8, 1, {}, {}}};
  const std::vector<Bytes> limit(8, Bytes{std::int64_t{1} << 34});
  const Answer reference = search({layers, sorted, schedules, devices, limit, std::nullopt}, {});
  const Problem problem{layers, scrambled, schedules, devices, limit, std::nullopt};
  const BestDevices found = search_devices({problem}, {}, search);
  EXPECT_EQ(found.found.outcome.plans[0].estimate, reference.plans[0].estimate);
  EXPECT_GT(search(problem, {}).plans[0].estimate, reference.plans[0].estimate);
  const DeviceOrder& order = found.problems[found.found.best].device_of_rank;
  for (std::size_t r = 0; r < 8; r += 2)
    EXPECT_EQ(was[order[r].index()] / 2, was[order[r + 1].index()] / 2) << r;
  EXPECT_LE(found.found.outcome.bound->time, reference.plans[0].estimate);
}

}  // namespace
}  // namespace pfeife
