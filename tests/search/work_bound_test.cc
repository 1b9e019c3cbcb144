// What the work alone and one microbatch alone prove, against every order of the devices and every
// cut.
#include "planner/search/bound/work_bound.h"

#include <gtest/gtest.h>

#include "planner/cost/estimate/evaluate.h"
#include "planner/search/bound/segment_bound.h"
#include "planner/search/choices/device_orders.h"
#include "tests/search/device_instance.h"

namespace pfeife {
namespace {

// Devices of one kind and of several: what holds whichever runs which rank knows more of the first.
TEST(WorkBounds, AreBelowEveryPlanOfEveryOrderOfTheDevices) {
  std::mt19937 random(13);
  double closest = 0;
  for (int round = 0; round < 120; ++round) {
    DeviceInstance instance = random_device_instance(random, 1 + random() % 3);
    std::vector<std::size_t>& kinds = instance.cluster.kind_of_device;
    if (round % 2 == 0) std::ranges::fill(kinds, kinds.front());
    for (const ScheduleSpec& spec : instance.schedules) {
      Problem problem = instance.problem();
      problem.schedules = {spec};
      const double any_devices = any_devices_bound(problem);
      ASSERT_GE(any_devices, std::max(shared_work_bound(problem, spec.microbatches),
                                      one_microbatch_bound(problem)));
      for_each_order(instance.devices(), [&](const DeviceOrder& order) {
        const Problem one = with_devices(problem, order);
        const double bound = std::max(any_devices, work_bound(one));
        const Placement placement{placement_for(spec).rank_of_stage, one.device_of_rank};
        for_each_partition(instance.layers, spec.stages(), [&](const Partition& cuts) {
          const Nanoseconds plan =
              evaluate(one.layers, one.cluster, generate(spec), placement, cuts).estimate;
          ASSERT_LE(bound, static_cast<double>(plan.count())) << round;
          closest = std::max(closest, bound / static_cast<double>(plan.count()));
        });
      });
    }
  }
  EXPECT_GT(closest, 0.99);  // on one device the work is nearly all
}

// Three devices of one kind. One link is slow, and the order of the ranks decides whether it is
// used: what holds for any order knows of no link.
TEST(WorkBounds, OfAnyDevicesKnowNoLinks) {
  Layers layers;
  for (std::size_t l = 0; l < 3; ++l) {
    layers.layers.push_back({.times = {{Nanoseconds{10}, Nanoseconds{10}, Nanoseconds{10}}}});
    if (l < 2) layers.values.push_back({"v", LayerId{l}, {LayerId{l + 1}}, Bytes{1}, Bytes{1}});
  }
  Cluster cluster = uniform_cluster(3, {}, {1e12}, Nanoseconds{0});
  for (const std::size_t pair : {0 * 3 + 1, 1 * 3 + 0})
    cluster.paths[pair].latency = Nanoseconds{1'000'000};
  const Problem problem{.layers = layers,
                        .cluster = cluster,
                        .schedules = {{"gpipe", 3, 1, 1, {}, {}}},
                        .device_of_rank = {DeviceId{0}, DeviceId{1}, DeviceId{2}},
                        .memory_limit = std::vector<Bytes>(3, Bytes{1 << 30})};
  const auto estimate = [&](std::vector<DeviceId> devices) {
    const ScheduleSpec& spec = problem.schedules.front();
    const Placement placement{placement_for(spec).rank_of_stage, std::move(devices)};
    return evaluate(layers, cluster, generate(spec), placement, {{0, 1}}).estimate.count();
  };
  EXPECT_GT(estimate({DeviceId{0}, DeviceId{1}, DeviceId{2}}), 1'000'000);
  const std::int64_t best = estimate({DeviceId{0}, DeviceId{2}, DeviceId{1}});
  EXPECT_LT(best, 1000);
  EXPECT_LE(any_devices_bound(problem), static_cast<double>(best));
  EXPECT_GE(any_devices_bound(problem), 70.0);  // F and I of three stages, W of one
}

}  // namespace
}  // namespace pfeife
