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
        seconds(collective_time(CollectiveKind::AllReduce, bytes, {ranks, ranks}, network));
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
  Network network{.devices_per_host = 2, .port = {1e9}};
  network.all_reduce = table(700), network.reduce_scatter = table(200);
  network.all_to_all = table(100);
  const auto us = [&](CollectiveKind kind) {
    return collective_time(kind, Bytes{2'000'000}, {2, 2}, network).count() / 1000;
  };
  EXPECT_EQ(us(CollectiveKind::AllReduce), 1400);
  EXPECT_EQ(us(CollectiveKind::ReduceScatter), 400);
  EXPECT_EQ(us(CollectiveKind::AllGather), 700);
  EXPECT_EQ(us(CollectiveKind::AllToAll), 200);
  network.all_gather = table(300);
  EXPECT_EQ(us(CollectiveKind::AllGather), 600);
}

TEST(Collective, GroupsOverHostsHaveEqualPartsOrAreRefused) {
  Mesh mesh;
  mesh.sizes = {4, 1, 2, 4};  // tp, cp, pp, dp; dp outermost: stride 8
  EXPECT_EQ(group_shape(mesh, {Axis::Tensor}, 8), (GroupShape{4, 4}));
  EXPECT_EQ(group_shape(mesh, {Axis::Data}, 8), (GroupShape{4, 1}));
  mesh.sizes = {3, 1, 1, 4};  // devices 6, 7, 8 lie on two hosts
  EXPECT_THROW(group_shape(mesh, {Axis::Tensor}, 8), ConfigError);
}

}  // namespace
}  // namespace pfeife
