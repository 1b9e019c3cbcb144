// The orders of devices that are listed: no two of them are alike, and none is missing.
#include "planner/search/choices/device_orders.h"

#include <gtest/gtest.h>

#include <set>

#include "planner/cost/estimate/evaluate.h"
#include "planner/io/cluster/cluster_reader.h"
#include "tests/search/device_instance.h"

namespace pfeife {
namespace {

TEST(DeviceOrders, HaveEveryEstimateThatAnyOrderHas) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const DeviceInstance instance = random_device_instance(random, 4);
    const ScheduleSpec& spec = instance.schedules[0];
    const Schedule schedule = generate(spec);
    Partition cuts;
    for (std::int32_t c = 0; cuts.stages() < spec.stages(); ++c) cuts.cuts.push_back(c);
    const auto estimate = [&](const DeviceOrder& order) {
      Placement placement = placement_for(spec);
      placement.device_of_rank = order;
      return evaluate(instance.layers, instance.cluster, schedule, placement, cuts).estimate;
    };
    std::set<Nanoseconds> all, listed;
    for_each_order(instance.devices(),
                   [&](const DeviceOrder& order) { all.insert(estimate(order)); });
    const auto orders = device_orders(instance.cluster, instance.devices(), 24);
    ASSERT_TRUE(orders);
    for (const DeviceOrder& order : *orders) listed.insert(estimate(order));
    EXPECT_EQ(listed, all) << round;
  }
}

TEST(DeviceOrders, OfPairsThatAreBridgedAreTheWaysToPairRanks) {
  // Eight devices in four bridged pairs: the orders that differ are the perfect matchings of the
  // eight ranks, 7 x 5 x 3 x 1.
  const Cluster cluster = read_cluster(PFEIFE_SOURCE_DIR "/configs/clusters/3090_x8.yaml");
  DeviceOrder devices;
  for (int d = 0; d < 8; ++d) devices.emplace_back(d);
  const auto orders = device_orders(cluster, devices, 20'000);
  ASSERT_TRUE(orders);
  EXPECT_EQ(orders->size(), 105U);
  EXPECT_EQ(orders->front(), devices);
  // One node of equal devices on a switch has one order; so many of an uneven one are not listed.
  const Cluster even = read_cluster(PFEIFE_SOURCE_DIR "/configs/clusters/a100_sxm4_40gb_x8.yaml");
  EXPECT_EQ(device_orders(even, devices, 1)->size(), 1U);
  EXPECT_FALSE(device_orders(cluster, devices, 1000));
}

}  // namespace
}  // namespace pfeife
