// What the work alone and one microbatch alone prove, against every order of the devices and every
// cut.
#include "planner/search/bound/work_bound.h"

#include <gtest/gtest.h>

#include "planner/cost/evaluate.h"
#include "planner/search/bound/segment_bound.h"
#include "planner/search/choices/device_orders.h"
#include "planner/search/choices/relaxed_devices.h"
#include "tests/search/device_instance.h"

namespace pfeife {
namespace {

TEST(WorkBounds, AreBelowEveryPlanOfEveryOrderOfTheDevices) {
  std::mt19937 random(13);
  double closest = 0;
  for (int round = 0; round < 120; ++round) {
    const DeviceInstance instance = random_device_instance(random, 1 + random() % 3);
    const Problem problem = instance.problem();
    const RelaxedDevices relaxed(problem);
    for (const ScheduleSpec& spec : instance.schedules) {
      const double any_devices =
          std::max(shared_work_bound(problem, spec.microbatches), one_microbatch_bound(problem));
      for_each_order(instance.devices(), [&](const Order& order) {
        Problem one = with_devices(problem, order);
        one.schedules = {spec};
        for (std::size_t r = 0; r < order.size(); ++r)
          ASSERT_LE(one.memory_limit[r], relaxed.problem().memory_limit[r]) << round;
        const double bound = std::max(any_devices, work_bound(one));
        const Placement placement = placement_for(spec);
        for_each_partition(instance.layers, spec.stages(), [&](const Partition& cuts) {
          const auto time = [&](const Problem& of) {
            const Placement there{placement.rank_of_stage, of.device_of_rank};
            return evaluate(of.layers, of.cluster, generate(spec), there, cuts).estimate;
          };
          const Nanoseconds plan = time(one);
          ASSERT_LE(bound, static_cast<double>(plan.count())) << round;
          ASSERT_LE(time(relaxed.problem()), plan) << round;
          closest = std::max(closest, bound / static_cast<double>(plan.count()));
        });
      });
    }
  }
  EXPECT_GT(closest, 0.99);  // on one device the work is nearly all
}

}  // namespace
}  // namespace pfeife
