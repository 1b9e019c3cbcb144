// What is measured of links, and the cluster file that it becomes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/cluster/cluster_reader.h"
#include "runtime/profile/cluster_text.h"

namespace pfeife {
namespace {

using std::chrono::microseconds;

LinkPoint point(std::int64_t bytes, std::int64_t one_way_us, std::int64_t both_us) {
  return {Bytes{bytes}, microseconds{one_way_us}, microseconds{both_us}, 8};
}

TEST(LinkRate, IsWhatMovesOnceTheLatencyHasPassed) {
  // 10 MB in 1.1 ms, of which 0.1 ms is latency: 10 GB/s.
  const LinkPoint ten = point(10'000'000, 1100, 1100);
  EXPECT_DOUBLE_EQ(rate(ten, ten.one_way, microseconds{100}).value, 10e9);
}

TEST(HalfDuplex, IsALinkThatCarriesLessThanOneAndAHalfTimesAsMuchBothWays) {
  // Both ways take x times as long as one: 2 / x as much is carried; 1.5 times at x = 4/3.
  const auto link = [](std::int64_t both) {
    return LinkMeasurement{Nanoseconds{0}, {point(1000, 300, both), point(2000, 600, 2 * both)}};
  };
  EXPECT_FALSE(link(300).half_duplex());
  EXPECT_FALSE(link(399).half_duplex());
  EXPECT_TRUE(link(401).half_duplex());
  EXPECT_TRUE(link(600).half_duplex());
}

// 20 us for nothing; 1 MiB takes 100 us more, 4 MiB 400 us more, and noise made 2 MiB as fast as 1.
TEST(ClusterText, IsReadAsWhatWasMeasured) {
  const LinkMeasurement link{
      microseconds{20},
      {point(1 << 20, 120, 240), point(2 << 20, 120, 240), point(4 << 20, 420, 840)}};
  DeviceKind kind;
  kind.name = "core", kind.type = DeviceType::Cpu, kind.memory = Bytes{std::int64_t{2} << 30};
  kind.memory_bandwidth = {12e9}, kind.memory_efficiency = 0.5;
  kind.peak["fp32"] = {50e9};
  kind.gemm_efficiency["fp32"] = {{{Flops{1e9}, 0.5}, {Flops{8e9}, 0.75}}};
  kind.kernel_overhead = Nanoseconds{2500};
  const Cluster cluster = parse_cluster(cluster_text("here", kind, 3, link, "today"), "c.yaml");
  EXPECT_EQ(cluster.name, "here");
  ASSERT_EQ(cluster.devices(), 3u);
  const DeviceKind& read = cluster.kind(DeviceId{2});
  EXPECT_EQ(read.type, DeviceType::Cpu);
  EXPECT_EQ(read.memory, kind.memory);
  EXPECT_EQ(read.peak, kind.peak);
  EXPECT_EQ(read.gemm_efficiency, kind.gemm_efficiency);
  EXPECT_EQ(read.kernel_overhead, kind.kernel_overhead);
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < 3; ++b) {
      if (a == b) continue;
      const Path& path = cluster.paths[a * 3 + b];
      EXPECT_EQ(path.latency, microseconds{20});
      ASSERT_EQ(path.bandwidth.points.size(), 2u) << "the point of 2 MiB is noise";
      // As many digits as are written: four.
      EXPECT_NEAR(path.bandwidth.at(Bytes{1 << 20}).value, (1 << 20) / 100e-6, 1e7);
      EXPECT_NEAR(path.bandwidth.at(Bytes{4 << 20}).value, (4 << 20) / 400e-6, 1e7);
      EXPECT_EQ(path.links, cluster.paths[b * 3 + a].links) << "half duplex: one way for both";
    }
}

}  // namespace
}  // namespace pfeife
