// What the work alone and one microbatch alone prove, against every order of the devices and every
// cut.
#include "planner/search/bound/work_bound.h"

#include <gtest/gtest.h>

#include "planner/cost/evaluate.h"
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
      for_each_order(instance.devices(), [&](const Order& order) {
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

}  // namespace
}  // namespace pfeife
