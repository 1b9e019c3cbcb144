// What pfeife-exp does where memory is short: recomputation, and plans that say so.
#include "planner/cost/estimate/memory.h"

#include <gmock/gmock.h>

#include <limits>
#include <random>
#include <sstream>

#include "planner/io/plan/plan_file.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

/// Lines of whole numbers, by table, the heads left out.
std::vector<std::vector<std::vector<std::int64_t>>> tables(const std::string& text) {
  std::vector<std::vector<std::vector<std::int64_t>>> found(1);
  std::istringstream lines(text);
  bool head = true;
  for (std::string line; std::getline(lines, line); head = line.empty()) {
    if (line.empty()) found.emplace_back();
    if (line.empty() || head) continue;
    std::istringstream cells(line);
    found.back().emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');)
      found.back().back().push_back(std::stoll(cell));
  }
  return found;
}

/// What stages.csv says of memory.
StageCosts costs_from(const std::string& text) {
  const auto found = tables(text);
  StageCosts costs;
  for (const auto& row : found.at(0)) {
    StageCost stage;
    stage.parameters = Bytes{row.at(6)}, stage.gradients = Bytes{row.at(7)};
    stage.optimizer_state = Bytes{row.at(8)};
    stage.saved = Bytes{row.at(9)}, stage.weight_saved = Bytes{row.at(10)};
    stage.temporary = {Bytes{row.at(11)}, Bytes{row.at(12)}, Bytes{row.at(13)}, Bytes{row.at(14)}};
    stage.recomputed = Bytes{row.at(15)}, stage.forward_again = Bytes{row.at(16)};
    costs.stages.push_back(stage);
  }
  for (const auto& row : found.at(1)) {
    if (static_cast<std::size_t>(row.at(0)) == costs.values.size())
      costs.values.push_back(
          {StageId{row.at(1)}, {}, Bytes{row.at(3)}, Bytes{row.at(4)}, row.at(5) == 1, {}});
    costs.values.back().to.emplace_back(row.at(2));
    costs.values.back().saved_by_receiver.push_back(row.at(6) == 1);
  }
  return costs;
}

class ShortMemory : public ProgramTest {
 protected:
  /// Eight layers that keep 100 MiB each: 400 MiB a microbatch on each of two devices.
  ShortMemory() {
    std::string layers =
        "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_"
        "bytes,weight_saved_bytes,temporary_bytes\n";
    for (int l = 0; l < 8; ++l)
      layers += std::string(1, static_cast<char>('a' + l)) + ",1,1,1,1000,1000,104857600,0,0\n";
    write("layers.csv", layers);
    std::filesystem::copy_file(configs() / "clusters" / "laptop.yaml", folder_ / "laptop.yaml");
    // 4 GiB a device, of which 500 MiB are left: one microbatch in flight.
    write("short.yaml",
          "version: 1\nmodel: layers.csv\ncluster: laptop.yaml\n"
          "cases: {devices: 2, microbatches: 4}\nbaselines: []\n"
          "plan: {families: 1f1b, reserve: 3596 MiB}\n");
  }
};

TEST_F(ShortMemory, RecomputesIfNothingFitsOtherwise) {
  const Outcome outcome = run({"short.yaml", "--out", "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // The last stage keeps one microbatch at a time, so the first is recomputed alone.
  EXPECT_THAT(outcome.out, HasSubstr("recompute=0 "));
  EXPECT_EQ(result("out", "planned", "feasible"), "1");
  EXPECT_THAT(read("out/devices=2,microbatches=4/case.json"),
              HasSubstr("any choice of recomputed stages"));
}

// Without recomputing, 450 MiB hold one microbatch, so the ranks take turns.
TEST_F(ShortMemory, RecomputesWhereTheMemoryCostsMoreTimeThanThat) {
  const std::vector<std::string> short_of = {"short.yaml",
                                             "--set",
                                             "plan.families=zb_greedy",
                                             "--set",
                                             "plan.reserve=3646 MiB",
                                             "--set",
                                             "plan.stages_per_rank=1"};
  const auto estimate = [&](const std::string& setting) {
    std::vector<std::string> arguments = short_of;
    arguments.insert(arguments.end(), {"--out", setting, "--set", "plan.recompute=" + setting});
    EXPECT_EQ(run(arguments).code, 0) << setting;
    return std::stod(result(setting, "planned", "estimate_ms"));
  };
  const double none = estimate("none"), choose = estimate("choose");
  EXPECT_LT(choose, none);
  EXPECT_EQ(estimate("if_needed"), choose);
  EXPECT_THAT(result("if_needed", "planned", "knobs"), HasSubstr("recompute="));
}

// What if_needed finds is the faster one of what a search finds without, and of what one finds that
// may recompute; such a small problem is searched to its end, so that choose finds no faster one.
TEST_F(ShortMemory, IfNeededIsNoSlowerThanWhatNoneAndChooseFind) {
  std::mt19937 random(7);
  const auto up_to = [&](unsigned most) { return std::to_string(1 + random() % most); };
  int faster = 0, needed = 0, kept = 0;
  for (int round = 0; round < 12; ++round) {
    std::string layers =
        "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_"
        "bytes,weight_saved_bytes,temporary_bytes\n";
    for (int l = 0; l < 8; ++l)
      layers += std::string(1, static_cast<char>('a' + l)) + "," + up_to(2) + "," + up_to(9) + "," +
                up_to(9) + ",1000,1000," + up_to(160) + "000000,0,0\n";
    write("random.csv", layers);
    const std::string reserve = std::to_string(3000 + 70 * round);  // 1096 MiB left, and less
    // Infinite: nothing fits.
    const auto estimate = [&](const std::string& recompute) {
      const std::vector<std::string> arguments = {"short.yaml", "--force",
                                                  "--out",      recompute,
                                                  "--set",      "model=random.csv",
                                                  "--set",      "plan.families=[gpipe, 1f1b]",
                                                  "--set",      "plan.stages_per_rank=1",
                                                  "--set",      "plan.reserve=" + reserve + " MiB",
                                                  "--set",      "plan.recompute=" + recompute};
      const Outcome outcome = run(arguments);
      EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.err;
      return outcome.code == 0 ? std::stod(result(recompute, "planned", "estimate_ms"))
                               : std::numeric_limits<double>::infinity();
    };
    const double none = estimate("none"), choose = estimate("choose"),
                 if_needed = estimate("if_needed");
    EXPECT_LE(if_needed, none) << round;
    EXPECT_LE(if_needed, choose) << round;
    const bool fits = none != std::numeric_limits<double>::infinity();
    faster += fits && if_needed < none, kept += fits && if_needed == none;
    needed += !fits && if_needed < none;
  }
  EXPECT_GT(faster, 0);
  EXPECT_GT(needed, 0);
  EXPECT_GT(kept, 0);
}

TEST_F(ShortMemory, ThePlansFolderHasAllBytesThatItsPeaksFollowFrom) {
  ASSERT_EQ(run({"short.yaml", "--out", "out", "--set", "baselines=[gpipe]"}).code, 0);
  for (const char* name : {"planned", "gpipe"}) {
    const auto folder = std::filesystem::path("out/devices=2,microbatches=4") / name;
    const Plan plan = read_plan(folder_ / folder / "plan.yaml");
    const StageCosts costs = costs_from(read(folder / "stages.csv"));
    EXPECT_EQ(peak_memory(plan.schedule, costs, plan.placement), plan.peak_memory) << name;
  }
}

TEST_F(ShortMemory, WithoutRecomputationSaysThatItWouldHelp) {
  const Outcome outcome = run({"short.yaml", "--out", "out", "--set", "plan.recompute=none"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("would help: recomputing stages: 1f1b"));
  EXPECT_THAT(outcome.err, HasSubstr("would help: recomputing stages: 1f1b"));
}

// Fourteen stages of eight layers: no memory is short.
TEST_F(ShortMemory, SchedulesOfTooManyStagesAreToldApartFromThoseThatHoldTooMuch) {
  const Outcome outcome = run({"short.yaml", "--out", "out", "--set", "plan.families=looped",
                               "--set", "plan.stages_per_rank=7", "--set", "plan.reserve=1 GiB"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("would help: other schedules, which have fewer stages: "));
  EXPECT_EQ(outcome.out.find("in flight"), std::string::npos);
}

TEST_F(ShortMemory, APlanFileKeepsWhatIsRecomputed) {
  run({"short.yaml", "--out", "out"});
  std::filesystem::copy(folder_ / "out" / "devices=2,microbatches=4" / "planned", folder_ / "kept");
  EXPECT_THAT(read("kept/plan.yaml"), HasSubstr("recompute: [true, false]"));
  write("again.yaml",
        "version: 1\nmodel: layers.csv\ncluster: laptop.yaml\nbaselines: []\n"
        "plan: {file: kept/plan.yaml, reserve: 3596 MiB}\n");
  const Outcome outcome = run({"again.yaml", "--out", "again"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* column : {"estimate_ms", "simulate_ms", "peak_memory_bytes", "feasible"})
    EXPECT_EQ(result("again", "planned", column), result("out", "planned", column)) << column;
}

// The first device has too little for either stage, the third too little for the second rank.
TEST_F(ShortMemory, AGivenPlanIsJudgedByTheDevicesThatItNames) {
  write("unequal.yaml",
        "version: 1\nname: unequal\ndevice_kinds:\n"
        "  small: {memory: 1 GiB, memory_bandwidth: 9 GB/s, peak: {fp32: 9 GFLOP/s},\n"
        "          gemm_efficiency: {fp32: [[1 GFLOP, 1]]}, kernel_overhead: 0 us}\n"
        "  large: {memory: 2 GiB, memory_bandwidth: 9 GB/s, peak: {fp32: 9 GFLOP/s},\n"
        "          gemm_efficiency: {fp32: [[1 GFLOP, 1]]}, kernel_overhead: 0 us}\n"
        "devices: [{kind: small, count: 1}, {kind: large, count: 2}]\n"
        "links: [{name: port, per: device, bandwidth: 9 GB/s, duplex: full}]\n"
        "routes: [{over: port, latency: 1 us}]\n");
  write("first.yaml",
        "version: 1\nmodel: layers.csv\ncluster: unequal.yaml\n"
        "cases: {devices: 2, microbatches: 4}\nbaselines: []\n"
        "plan: {families: gpipe, devices: [2, 1], allocator: none}\n");
  Outcome outcome = run({"first.yaml", "--out", "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  write("again.yaml",
        "version: 1\nmodel: layers.csv\ncluster: unequal.yaml\nbaselines: []\n"
        "plan: {file: 'out/devices=2,microbatches=4/planned/plan.yaml', allocator: none}\n");
  outcome = run({"again.yaml", "--out", "again"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* column : {"peak_memory_bytes", "memory_limit_bytes", "feasible"})
    EXPECT_EQ(result("again", "planned", column), result("out", "planned", column)) << column;
  outcome = run({"again.yaml", "--out", "again", "--set", "plan.reserve=600 MiB"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err,
              HasSubstr("the plan does not fit: rank 0 needs 1.563 GiB and has 1.414 GiB"));
}

// A rank of tiny_gpt allocates some 300 KiB, which the allocator takes from a segment of 2 MiB.
TEST_F(ShortMemory, WhatTheAllocatorReservesMustFit) {
  write("small.yaml",
        "version: 1\nname: small\ndevice_kinds:\n"
        "  small: {memory: 1.5 MiB, memory_bandwidth: 9 GB/s, peak: {fp32: 9 GFLOP/s},\n"
        "          gemm_efficiency: {fp32: [[1 GFLOP, 1]]}, kernel_overhead: 0 us}\n"
        "devices: [{kind: small, count: 2}]\n"
        "links: [{name: port, per: device, bandwidth: 9 GB/s, duplex: full}]\n"
        "routes: [{over: port, latency: 1 us}]\n");
  write("tiny.yaml", "version: 1\nmodel: " + (configs() / "models/tiny_gpt.pt2").string() +
                         "\ncluster: small.yaml\ncases: {devices: 2, microbatches: 4}\n"
                         "plan: {families: 1f1b, stages_per_rank: 1}\nbaselines: []\n");
  Outcome outcome = run({"tiny.yaml", "--out", "out"});
  EXPECT_EQ(outcome.code, 3) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("and has 1.47 MiB"));
  EXPECT_THAT(outcome.err, HasSubstr("; proven:"));  // every rank has one segment at least
  outcome = run({"tiny.yaml", "--out", "out", "--set", "plan.allocator=none"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LT(std::stod(result("out", "planned", "peak_memory_bytes")), 1 << 19);
  outcome = run({"tiny.yaml", "--out", "more", "--set", "cluster.device_kinds.small.memory=3 MiB"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GT(std::stod(result("more", "planned", "reserved_memory_bytes")), 1.8 * (1 << 20));
}

}  // namespace
}  // namespace pfeife
