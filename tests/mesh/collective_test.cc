// Times of collectives against measured ones and against sums by hand.
#include "planner/mesh/collective.h"

#include <gtest/gtest.h>

#include <cmath>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/files/csv_table.h"

namespace pfeife {
namespace {

const std::filesystem::path kRoot = PFEIFE_SOURCE_DIR;

// NCCL on 3 to 7 A100 of one host (vTrain, trace/a100); 2 and 8 are in the cluster file. Three
// devices at 1 and 2 MiB take longer than four, which no ring explains: these two are up to 21 %
// off.
TEST(Collective, AllReducesOfThreeToSevenDevicesAreWithinFifteenPercentButForTwo) {
  const Network network = read_network(kRoot / "configs/clusters/a100_sxm4_80gb_hosts.yaml");
  const CsvTable table = CsvTable::parse(
      read_text_file(kRoot / "experiments/studies/published_runs/data/vtrain_a100_allreduce.csv"));
  int far = 0, rows = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto number = [&](const char* column) {
      return number_of(table.at(row, column), column);
    };
    const auto ranks = static_cast<std::int64_t>(number("gpus"));
    if (ranks == 2 || ranks == 8) continue;
    const Bytes bytes{static_cast<std::int64_t>(number("bytes"))};
    const double measured = (number("out_of_place_us") + number("in_place_us")) / 2 * 1e-6;
    const double time =
        seconds(collective_time(CollectiveKind::AllReduce, bytes, {{ranks}}, network));
    const double error = std::abs(time / measured - 1);
    EXPECT_LT(error, 0.21) << ranks << " devices, " << bytes.value << " bytes";
    far += error > 0.15 ? 1 : 0, ++rows;
  }
  EXPECT_EQ(rows, 55);
  EXPECT_EQ(far, 2);
}

// Two devices at 1 GB/s a port. By tables 1 MB is gathered in 300 us, scattered in 200 us, sent to
// all in 100 us and reduced in 700 us; without its own, a gather takes half of a reduction.
TEST(Collective, EachKindHasItsTable) {
  const auto table = [](std::int64_t us) {
    return std::vector<CollectiveTable>{{2, {{Bytes{1'000'000}, Nanoseconds{1000 * us}}}}};
  };
  Network network{.devices_per_host = 2, .levels = {{2, {1e9}}}};
  network.all_reduce = table(700), network.reduce_scatter = table(200);
  network.all_to_all = table(100);
  const auto us = [&](CollectiveKind kind) {
    return collective_time(kind, Bytes{2'000'000}, {{2}}, network).count() / 1000;
  };
  EXPECT_EQ(us(CollectiveKind::AllReduce), 1400);
  EXPECT_EQ(us(CollectiveKind::ReduceScatter), 400);
  EXPECT_EQ(us(CollectiveKind::AllGather), 700);
  EXPECT_EQ(us(CollectiveKind::AllToAll), 200);
  network.all_gather = table(300);
  EXPECT_EQ(us(CollectiveKind::AllGather), 600);
}

// Two hosts of two devices, two experts a token of four, one expert a device; ports of 2 GB/s, NICs
// of 1. A host has none of a token's experts if both are among the other's two: 1 of 6; so a token
// meets 2 x 5/6 hosts, half of them its own, and 4 x 1/2 = 2 devices, half of them reached by a
// port. Of 1 MB of tokens 5/6 leave by a NIC: 833.3 us; 1 MB goes over a port: 500 us.
TEST(Collective, ATokenCrossesOnceToEachHostThatHasExpertsOfIt) {
  const Network network{.devices_per_host = 2, .levels = {{2, {2e9}}, {0, {1e9}}}};
  const auto us = [&](const GroupShape& group) {
    return 1e6 * seconds(expert_exchange_time(Bytes{2'000'000}, {4, 2}, group, network));
  };
  EXPECT_NEAR(us({{2, 4}}), 833.3, 0.1);
  // One host of two devices: 2 x 5/6 devices, half of them the token's own.
  EXPECT_NEAR(us({{2}}), 416.7, 0.1);
}

// DeepEP on hosts of eight H100, hidden 7168, 4,096 tokens, top 8 of 256, bf16 combine and dispatch
// in half of the bytes (NVIDIA AIConfigurator 0.12.0, Apache-2.0), ms: within 30 % on one, two and
// four hosts, where a copy for each expert takes up to 2.8 times as long. On eight hosts the
// measured times are twice as long as the bytes say, for a reason that is not known.
TEST(Collective, ExpertsOverHostsTakeAboutAsLongAsMeasured) {
  const Network network = read_network(kRoot / "configs/clusters/h100_sxm_hosts.yaml");
  const std::int64_t copies = 4096 * 8 * 7168;
  struct Measured {
    std::int64_t hosts;
    double dispatch, combine;
  };
  for (const auto& [hosts, dispatch, combine] :
       {Measured{1, 0.49, 0.97}, {2, 0.81, 1.83}, {4, 1.85, 3.6}, {8, 6.7, 12.8}}) {
    const auto ms = [&, shape = GroupShape{{8, 8 * hosts}}](std::int64_t bytes) {
      return 1e3 * seconds(expert_exchange_time(Bytes{bytes}, {256, 8}, shape, network));
    };
    const double tolerance = hosts < 8 ? 0.3 : 0.6;
    EXPECT_NEAR(ms(copies) / dispatch, 1, tolerance) << hosts << " hosts";
    EXPECT_NEAR(ms(2 * copies) / combine, 1, tolerance) << hosts << " hosts";
  }
}

TEST(Collective, GroupsOverHostsHaveEqualPartsOrAreRefused) {
  Mesh mesh;
  mesh.sizes = {4, 1, 2, 4};  // tp, cp, pp, dp; dp outermost: stride 8
  EXPECT_EQ(group_shape(mesh, {Axis::Tensor}, {8, 32}), (GroupShape{{4, 4}}));
  EXPECT_EQ(group_shape(mesh, {Axis::Data}, {8, 32}), (GroupShape{{1, 4}}));
  EXPECT_EQ(group_shape(mesh, {Axis::Data}, {8, 16, 32}), (GroupShape{{1, 2, 4}}));
  mesh.sizes = {3, 1, 1, 4};  // devices 6, 7, 8 lie on two hosts
  EXPECT_THROW(group_shape(mesh, {Axis::Tensor}, {8}), ConfigError);
}

// Hosts of two devices, pods of two hosts, any number of pods; 4, 2 and 0.5 GB/s a device. Of 8 MB
// that eight devices reduce a host's ring sends 4 MB twice: 2 ms. A host's two devices send and get
// 2 x 3/4 x 8 MB together to the three other hosts: 3 ms; a pod's four 2 x 1/2 x 8 MB to the other
// pod: 4 ms, the slowest, before which go the latencies: 2 x 3.4 us of NVLink, 2 x 5 and 2 x 10 us.
// All-to-all: 1/8, 6/8 and 4/8 of 8 MB leave a device, its host and its pod: 0.25, 3 and 8 ms.
TEST(Collective, ThreeLevels) {
  const Network network{
      .devices_per_host = 2,
      .levels = {{2, {4e9}}, {4, {2e9}, Nanoseconds{5000}}, {0, {0.5e9}, Nanoseconds{10'000}}}};
  const auto ms = [&](CollectiveKind kind, const GroupShape& group) {
    return 1e3 * seconds(collective_time(kind, Bytes{8'000'000}, group, network));
  };
  EXPECT_NEAR(ms(CollectiveKind::AllReduce, {{2, 4, 8}}), 0.0068 + 0.01 + 0.02 + 4, 1e-6);
  EXPECT_NEAR(ms(CollectiveKind::AllGather, {{2, 4, 8}}), 0.0034 + 0.005 + 0.01 + 2, 1e-6);
  EXPECT_NEAR(ms(CollectiveKind::AllToAll, {{2, 4, 8}}), 0.01 + 8, 1e-6);
  // A pod alone: 2 x 1/2 x 8 MB over two devices' 2 GB/s are 2 ms.
  EXPECT_NEAR(ms(CollectiveKind::AllReduce, {{2, 4, 4}}), 0.0068 + 0.01 + 2, 1e-6);
  // One device of each pod: 2 x 1/2 x 8 MB at 0.5 GB/s.
  EXPECT_NEAR(ms(CollectiveKind::AllReduce, {{1, 1, 2}}), 0.02 + 16, 1e-6);
}

}  // namespace
}  // namespace pfeife
