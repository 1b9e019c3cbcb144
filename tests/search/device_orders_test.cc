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

// Hosts {0, 1} and {2, 3}, one wire between them for both ways. Alone a message takes 1010 ns
// within a host and 1005 ns over the wire, so the estimate crosses it three times, 0 2 1 3, and
// saves 5 ns each time. But then eight microbatches, there and back, keep it busy for 8 x 6 us, a
// rank computes for 8 x 0.3 us, and 0 1 2 3, which crosses once, is busy for 8 x 2 us.
TEST(PromisingOrders, SendLittleOverAWireThatIsShared) {
  Cluster cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{10});
  const std::size_t wire = cluster.links.size();
  cluster.links.push_back({"wire", {1e9}});
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 4; ++b)
      if (a / 2 != b / 2)
        cluster.paths[a * 4 + b].links = {wire}, cluster.paths[a * 4 + b].latency = Nanoseconds{5};
  Layers layers;
  for (std::size_t l = 0; l < 4; ++l) {
    Layer layer;
    layer.name = "l" + std::to_string(l);
    layer.times = {{Nanoseconds{100}, Nanoseconds{100}, Nanoseconds{100}, Nanoseconds{0}}};
    layers.layers.push_back(layer);
  }
  for (std::size_t l = 0; l < 3; ++l) {
    LayerValue value{"v", LayerId{l}, {LayerId{l + 1}}, Bytes{1000}, {}, {}};
    value.gradient_bytes = value.bytes, value.has_gradient = true;
    layers.values.push_back(value);
  }
  const ScheduleSpec spec{.family = "1f1b", .ranks = 4, .microbatches = 8};
  const DeviceOrder devices{DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}};
  const std::vector<Bytes> limit(4, Bytes{1 << 20});
  const Problem problem{layers, cluster, {spec}, devices, limit, Partition{{0, 1, 2}}};
  Priced plan;
  plan.spec = spec, plan.partition = *problem.cuts, plan.placement = placement_for(spec);
  const auto first = [&](const Semantics& semantics) {
    SearchOptions options;
    options.semantics = semantics;
    return promising_orders(problem, {plan}, 1, options).orders.front();
  };
  const DeviceOrder crossing{DeviceId{0}, DeviceId{2}, DeviceId{1}, DeviceId{3}};
  EXPECT_EQ(first({}), crossing);
  EXPECT_EQ(first({.queues = Queues::None, .links = Links::Shared}), devices);
}

}  // namespace
}  // namespace pfeife
