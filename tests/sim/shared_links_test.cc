// Shared links against figures worked out by hand and by an independent max-min fluid simulator.
#include <gmock/gmock.h>

#include <regex>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/schedules/oracle_csv.h"
#include "tests/sim/random_costs.h"
#include "tests/sim/sim_test.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using testing::GraphByHand;
class SharedLinks : public testing::SimulatorTest {};

const std::string kKind =
    "version: 1\nname: x\ndevice_kinds: {k: {memory: 1 GiB, memory_bandwidth: 1 GB/s, peak: {fp32: "
    "1 "
    "TFLOP/s}, gemm_efficiency: {fp32: [[1 GFLOP, 1]]}}}\ndevices: [{kind: k, count: 4}]\n";

/// "box": every device has a slot, two devices share a root; all links 25 GB/s a direction, any
/// path 5 us.
Cluster box() {
  return parse_cluster(
      kKind +
          "links:\n  - {name: slot, per: device, bandwidth: 25 GB/s}\n  - {name: root, per: [[0, "
          "1], "
          "[2, 3]], bandwidth: 25 GB/s}\nroutes: [{over: [slot, root], latency: 5 us}]\n",
      "box");
}
/// "switch": one port of 300 GB/s a device and direction, 2 us.
Cluster star() {
  return parse_cluster(
      kKind +
          "links: [{name: port, per: device, bandwidth: 300 GB/s}]\nroutes: [{over: "
          "port, latency: 2 us}]\n",
      "switch");
}
/// "root": 0 -> 1 over {root 25 GB/s} in 2 us; 2 -> 3 over {A 100, root, B 50} in 6 us.
Cluster one_root() {
  Cluster cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{0});
  cluster.links = {{"root", {25e9}}, {"A", {100e9}}, {"B", {50e9}}};
  cluster.paths.assign(16, {});
  cluster.paths[0 * 4 + 1] = {{0}, Nanoseconds{2000}, {{{Bytes{1}, {25e9}}}}};
  cluster.paths[2 * 4 + 3] = {{1, 0, 2}, Nanoseconds{6000}, {{{Bytes{1}, {25e9}}}}};
  return cluster;
}

int device(const std::string& name) { return name[0] >= 'a' ? name[0] - 'a' : std::stoi(name); }

/// "0->2 1e9 B; 1->3 5e8 B" and "... then compute 10 on 2".
std::vector<std::int64_t> run_flows(const Cluster& cluster, const std::string& input) {
  GraphByHand hand(cluster, 4, Links::Shared);
  const std::regex flow(
      R"(\s*(\w)->(\w) ([0-9.e]+) B( over [\w ]+)?( then compute (\d+) on (\d))?)");
  for (const std::string& text : split(input, ';')) {
    std::smatch part;
    if (!std::regex_match(text, part, flow)) {
      ADD_FAILURE() << text;
      return {};
    }
    const std::size_t sent =
        hand.transfer(device(part[1]), device(part[2]), Bytes{std::llround(std::stod(part[3]))});
    if (part[5].matched) hand.compute(std::stoi(part[7]), Nanoseconds{std::stol(part[6])}, {sent});
  }
  return hand.ends();
}

TEST_F(SharedLinks, FlowsEndWhenMaxMinFairnessSays) {
  const std::map<std::string, Cluster> platforms = {
      {"box", box()}, {"switch", star()}, {"root", one_root()}};
  int checked = 0;
  for (const OracleRow& row : oracle_rows("oracles/simgrid_platform.csv")) {
    if (row.at("case").starts_with("pipeline")) continue;
    std::vector<std::int64_t> expected;
    for (const std::size_t ns : numbers(row.at("expected_ns")))
      expected.push_back(static_cast<std::int64_t>(ns));
    EXPECT_EQ(run_flows(platforms.at(row.at("platform")), row.at("input")), expected)
        << row.at("case");
    ++checked;
  }
  EXPECT_EQ(checked, 9);
}

/// 1F1B, 4 ranks, 8 microbatches, F 1 ms, B 2 ms, messages of `bytes`, each sent as soon as it is
/// there.
Nanoseconds run_pipeline(const Cluster& cluster, Bytes bytes) {
  const ScheduleSpec spec{.family = "1f1b", .ranks = 4, .microbatches = 8};
  const Placement placement = placement_for(spec);
  StageCosts costs = uniform_costs(4, Nanoseconds{1'000'000}, Nanoseconds{1'500'000},
                                   Nanoseconds{500'000}, Nanoseconds{0});
  for (StagePair& pair : costs.pairs) pair.bytes = pair.gradient_bytes = bytes;
  testing::take_times_from(cluster, placement, costs);
  const Schedule lowered = lower(generate(spec), costs, placement);
  const DependencyGraph graph = dependencies(lowered, stage_graph(costs), placement,
                                             {.queues = Queues::None, .links = Links::Shared});
  return step_time(std::get<Trace>(simulate(graph, costs, placement, cluster)));
}

TEST_F(SharedLinks, PipelinesTakeAsLongAsAnIndependentFluidSimulatorSays) {
  const std::regex input(R"(1F1B 4 ranks 8 microbatches f 1e6 b 2e6 (\d+) B)");
  int checked = 0;
  for (const OracleRow& row : oracle_rows("oracles/simgrid_platform.csv")) {
    std::smatch part;
    if (!std::regex_match(row.at("input"), part, input)) continue;
    EXPECT_EQ(run_pipeline(box(), Bytes{std::stol(part[1])}).count(),
              std::stol(row.at("expected_ns")))
        << row.at("case");
    ++checked;
  }
  EXPECT_EQ(checked, 4);
}

// One flow of 1 GB over 25 GB/s is known to take 30 ms (an application limit below the link's
// speed); two of them want 2 x 33.3 of the 25 GB/s. Each gets half of the capacity: 12.5 GB/s x its
// factor 1.333 = 16.7, so 60 ms.
TEST_F(SharedLinks, APublishedTransferTimeHoldsAloneAndScalesUnderContention) {
  const Cluster cluster = one_root();
  GraphByHand alone(cluster, 4, Links::Shared);
  alone.transfer(0, 1, Bytes{1'000'000'000}, {}, Nanoseconds{30'000'000});
  EXPECT_THAT(alone.ends(), ElementsAre(30'000'000));
  GraphByHand both(cluster, 4, Links::Shared);
  both.transfer(0, 1, Bytes{1'000'000'000}, {}, Nanoseconds{30'002'000});
  both.transfer(0, 1, Bytes{1'000'000'000}, {}, Nanoseconds{30'002'000});
  EXPECT_THAT(both.ends(), ElementsAre(60'002'000, 60'002'000));
}

// A message of 1 MB goes at 8 GB/s on a link that can carry 10: two of them want 16 and get 5 each
// of the capacity, 0.8 of which arrives: 4 GB/s, 250 us.
TEST_F(SharedLinks, BandwidthBySizeScalesTheShare) {
  Cluster cluster = uniform_cluster(2, DeviceKind{}, {10e9}, Nanoseconds{1000});
  for (Path& path : cluster.paths)
    path.bandwidth = {{{Bytes{1'000'000}, {8e9}}, {Bytes{100'000'000}, {10e9}}}};
  GraphByHand hand(cluster, 2, Links::Shared);
  hand.transfer(0, 1, Bytes{1'000'000});
  EXPECT_THAT(hand.ends(), ElementsAre(126'000));
  hand.transfer(0, 1, Bytes{1'000'000});
  EXPECT_THAT(hand.ends(), ElementsAre(251'000, 251'000));
}

// A window of 4 MiB, SimGrid's default for TCP, would cap this at 2 GB/s.
TEST_F(SharedLinks, LatencyDoesNotCapTheBandwidth) {
  const Cluster cluster = uniform_cluster(2, DeviceKind{}, {300e9}, Nanoseconds{1'000'000});
  GraphByHand hand(cluster, 2, Links::Shared);
  hand.transfer(0, 1, Bytes{300'000'000});
  EXPECT_THAT(hand.ends(), ElementsAre(2'000'000));
}

TEST_F(SharedLinks, OneDeviceAndZeroLatencyCostNothing) {
  Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e9}, Nanoseconds{0});
  GraphByHand hand(cluster, 2, Links::Shared);
  hand.transfer(0, 0, Bytes{1'000'000});
  hand.transfer(0, 1, Bytes{1000});
  hand.transfer(1, 0, Bytes{1});
  hand.transfer(1, 0, Bytes{0});
  EXPECT_THAT(hand.ends(), ElementsAre(0, 1000, 1, 0));
}

// At 1 kB/s a byte takes 1 ms; two of them share.
TEST_F(SharedLinks, EvenOneByteShares) {
  const Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e3}, Nanoseconds{0});
  GraphByHand hand(cluster, 2, Links::Shared);
  hand.transfer(0, 1, Bytes{1});
  EXPECT_THAT(hand.ends(), ElementsAre(1'000'000));
  hand.transfer(0, 1, Bytes{1});
  EXPECT_THAT(hand.ends(), ElementsAre(1'999'999, 1'999'999)) << "1 ns of each is latency";
}

/// Three ports of 10 GB/s a direction, 1 ns.
Cluster three_ports(const std::string& more = "") {
  std::string kind = kKind;
  kind.replace(kind.find("count: 4"), 8, "count: 3");
  return parse_cluster(kind +
                           "links: [{name: port, per: device, bandwidth: 10 GB/s}]\nroutes: "
                           "[{over: port, latency: 1 ns}]\n" +
                           more,
                       "ports");
}
constexpr Nanoseconds us(std::int64_t count) { return Nanoseconds{1000 * count}; }

// What a rank's replicas reduce in 100 us would have the port for 60 of them: 600 kB, which have
// 5 GB/s beside a message of 1 MB, and take 120 us. Then the message has 400 kB to go, at 10 GB/s.
// A flow's first nanosecond is latency: of 100 us, bytes are under way for 99,999 ns.
TEST_F(SharedLinks, WhatReplicasReduceSharesTheirDevicesPort) {
  const Cluster cluster = three_ports();
  GraphByHand alone(cluster, 3, Links::Shared);
  alone.reduction(0, us(100), us(60));
  EXPECT_THAT(alone.ends(), ElementsAre(100'000));
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}}) {
    GraphByHand both(cluster, 3, Links::Shared);
    both.reduction(0, us(100), us(60));
    both.transfer(from, to, Bytes{1'000'000});
    EXPECT_THAT(both.ends(), ElementsAre(120'000, 160'000));
  }
  GraphByHand elsewhere(cluster, 3, Links::Shared);
  elsewhere.reduction(0, us(100), us(60));
  elsewhere.transfer(1, 2, Bytes{1'000'000});
  EXPECT_THAT(elsewhere.ends(), ElementsAre(100'000, 100'001));
  GraphByHand delayed(cluster, 3, Links::Delay);
  delayed.reduction(0, us(100), us(60));
  delayed.transfer(0, 1, Bytes{1'000'000});
  EXPECT_THAT(delayed.ends(), ElementsAre(100'000, 100'001));
}

// 200 of 1,000 us are 2 GB/s: less than half of the port, so a message beside it has the other 8.
// (A message that is slow by itself takes its whole share.)
TEST_F(SharedLinks, AReductionTakesNoMoreThanItNeedsToBeOnTime) {
  const Cluster cluster = three_ports();
  GraphByHand hand(cluster, 3, Links::Shared);
  hand.reduction(0, us(1000), us(200));
  hand.transfer(0, 1, Bytes{1'000'000});
  EXPECT_THAT(hand.ends(), ElementsAre(1'000'000, 125'001));
}

// Three flows on the way out of device 0: the reduction wants 2 GB/s of it, messages have 4 each
// until one has its 400 kB, at 100 us; the other one's 600 kB then go at 8.
TEST_F(SharedLinks, ThreeFlowsOnAPortAreMaxMinFair) {
  const Cluster cluster = three_ports();
  GraphByHand hand(cluster, 3, Links::Shared);
  hand.reduction(0, us(1000), us(200));
  hand.transfer(0, 1, Bytes{400'000});
  hand.transfer(0, 2, Bytes{1'000'000});
  EXPECT_THAT(hand.ends(), ElementsAre(1'000'000, 100'001, 175'001));
}

// The first 40.001 us of 100 beside the last backward: 200 kB.
TEST_F(SharedLinks, AReductionsPartsHaveTheBytesOfTheirTimes) {
  const Cluster cluster = three_ports();
  GraphByHand hand(cluster, 3, Links::Shared);
  const std::size_t first = hand.reduction(0, Nanoseconds{59'999}, us(50));
  hand.graph.slots.front().parts.push_back(stage_action(Op::Backward, StageId{0}));
  hand.costs.replicas.front().beside = Nanoseconds{40'001};
  hand.transfer(0, 1, Bytes{1'000'000});
  // Both at 5 GB/s, then 800 kB of the message at 10.
  EXPECT_THAT(hand.ends(), ElementsAre(40'001, 120'001)) << first;
}

TEST_F(SharedLinks, RingsGoOverTheLinksThatTheClusterNames) {
  const Cluster none = three_ports("rings: []\n");
  GraphByHand hand(none, 3, Links::Shared);
  hand.reduction(0, us(100), us(60));
  hand.transfer(0, 1, Bytes{1'000'000});
  EXPECT_THAT(hand.ends(), ElementsAre(100'000, 100'001));
}

// Four pipelines send a message over one bus at the same time, of which one is simulated.
TEST_F(SharedLinks, ALinkOfSeveralPipelinesHasItsPartForOne) {
  Cluster bus = uniform_cluster(2, DeviceKind{}, {10e9}, Nanoseconds{1});
  bus.links = {{"bus", {10e9}, 4}};
  for (Path& path : bus.paths)
    if (!path.links.empty()) path.links = {0};
  GraphByHand hand(bus, 2, Links::Shared);
  hand.transfer(0, 1, Bytes{1'000'000});
  EXPECT_THAT(hand.ends(), ElementsAre(400'001));
  hand.reduction(0, us(100), us(60));  // 600 kB at 1.25 GB/s
  EXPECT_THAT(hand.ends(), ElementsAre(639'999, 479'996));
}

TEST_F(SharedLinks, DelayLinksDoNotShare) {
  const Cluster cluster = box();
  GraphByHand hand(cluster, 4, Links::Delay);
  for (int i = 0; i < 3; ++i) hand.transfer(0, 2, Bytes{1'000'000'000});
  EXPECT_THAT(hand.ends(), ElementsAre(40'005'000, 40'005'000, 40'005'000));
}

}  // namespace
}  // namespace pfeife
