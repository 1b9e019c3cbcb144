#include "planner/ir/machine/cluster.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pfeife {
namespace {

TEST(BandwidthCurve, OnePointIsConstant) {
  const BandwidthCurve curve{{{Bytes{1 << 20}, {5e9}}}};
  EXPECT_EQ(curve.at(Bytes{0}).value, 5e9);
  EXPECT_EQ(curve.at(Bytes{1 << 30}).value, 5e9);
}

TEST(BandwidthCurve, TheTimeIsLinearBetweenPoints) {
  // 1 KiB and 64 KiB are 6 doublings apart; 8 KiB is half of them up.
  const BandwidthCurve curve{{{Bytes{1024}, {10e9}}, {Bytes{65536}, {40e9}}}};
  EXPECT_EQ(curve.at(Bytes{1024}).value, 10e9);
  EXPECT_EQ(curve.at(Bytes{65536}).value, 40e9);
  EXPECT_NEAR(curve.at(Bytes{8192}).value, 30e9, 1);
  EXPECT_EQ(curve.at(Bytes{10}).value, 10e9);
  EXPECT_EQ(curve.at(Bytes{1 << 20}).value, 40e9);
}

TEST(BandwidthCurve, AFirstPointOfSizeZeroIsNoTrouble) {
  const BandwidthCurve curve{{{Bytes{0}, {1e9}}, {Bytes{100}, {3e9}}}};
  EXPECT_EQ(curve.at(Bytes{0}).value, 1e9);
  EXPECT_NEAR(curve.at(Bytes{10}).value, 3e9, 1);
}

TEST(EfficiencyCurve, InterpolatesInLogFlopsAndFallsBelowTheFirstPoint) {
  const EfficiencyCurve curve{{{{1e9}, 0.5}, {{100e9}, 0.9}}};
  EXPECT_NEAR(curve.at({10e9}), 0.7, 1e-12);
  EXPECT_EQ(curve.at({1e12}), 0.9);
  EXPECT_EQ(curve.at({1e9}), 0.5);
  EXPECT_NEAR(curve.at({1e8}), 0.5 * std::pow(0.1, 0.35), 1e-12);
}

TEST(TransferTime, IsLatencyPlusBytesOverBandwidth) {
  const Cluster cluster = uniform_cluster(2, DeviceKind{}, {25e9}, Nanoseconds{5000});
  const Path& path = cluster.path(DeviceId{0}, DeviceId{1});
  EXPECT_EQ(transfer_time(path, Bytes{1'000'000'000}), Nanoseconds{40'005'000});
  EXPECT_EQ(transfer_time(path, Bytes{0}), Nanoseconds{5000});
  EXPECT_EQ(transfer_time(cluster.path(DeviceId{1}, DeviceId{1}), Bytes{1'000'000}),
            Nanoseconds{0});
}

TEST(AllReduceTime, IsTwiceTheRingAndCountsDevicesOnce) {
  const Cluster cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{100});
  // Ring of 4: 6 steps of 250 bytes at 1 byte/ns after 100 ns.
  EXPECT_EQ(
      all_reduce_time(cluster, {DeviceId{3}, DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{0}},
                      Bytes{1000}),
      Nanoseconds{6 * 350});
  EXPECT_EQ(all_reduce_time(cluster, {DeviceId{2}, DeviceId{2}}, Bytes{1000}), Nanoseconds{0});
}

TEST(AllReduceTime, IsAsSlowAsTheSlowestNeighbour) {
  Cluster cluster = uniform_cluster(3, DeviceKind{}, {1e9}, Nanoseconds{0});
  cluster.paths[2 * 3 + 0].latency = Nanoseconds{7};  // the ring is 0 > 1 > 2 > 0
  EXPECT_EQ(all_reduce_time(cluster, {DeviceId{0}, DeviceId{1}, DeviceId{2}}, Bytes{300}),
            Nanoseconds{4 * 107});
}

TEST(AllReduceTime, FollowsTheOrderOfTheDevices) {
  Cluster cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{0});
  for (const auto& [a, b] : {std::pair{0, 2}, {2, 0}, {1, 3}, {3, 1}})
    cluster.paths[static_cast<std::size_t>(a * 4 + b)].latency = Nanoseconds{50};
  const auto time = [&](std::vector<DeviceId> ring) {
    return all_reduce_time(cluster, ring, Bytes{400});
  };
  EXPECT_EQ(time({DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}}), Nanoseconds{6 * 100});
  EXPECT_EQ(time({DeviceId{2}, DeviceId{3}, DeviceId{0}, DeviceId{1}}), Nanoseconds{6 * 100});
  EXPECT_EQ(time({DeviceId{0}, DeviceId{2}, DeviceId{1}, DeviceId{3}}), Nanoseconds{6 * 150});
}

TEST(UniformCluster, HasOneLinkForEveryOrderedPair) {
  const Cluster cluster = uniform_cluster(3, DeviceKind{}, {1e9}, Nanoseconds{1});
  EXPECT_EQ(cluster.devices(), 3u);
  ASSERT_EQ(cluster.links.size(), 6u);
  const Path& there = cluster.path(DeviceId{0}, DeviceId{2});
  const Path& back = cluster.path(DeviceId{2}, DeviceId{0});
  ASSERT_EQ(there.links.size(), 1u);
  EXPECT_NE(there.links, back.links);
  EXPECT_EQ(cluster.links[there.links[0]].name, "0>2");
}

}  // namespace
}  // namespace pfeife
