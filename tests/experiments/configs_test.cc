// Every shipped config runs, in reduced form, and gives the figures that it promises.
#include <gmock/gmock.h>

#include <map>

#include "tests/experiments/program.h"

namespace pfeife {
namespace {

std::vector<std::string> shipped_configs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(configs()))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class ShippedConfig : public ProgramTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(ShippedConfig, RunsReducedAndLeavesEveryFile) {
  if (run({(configs() / GetParam()).string() + ".yaml", "--measures"}).code == 0)
    GTEST_SKIP() << "measures; tests/measure runs it where pfeife-run is";
  // Enough devices that the models fit.
  const std::map<std::string, std::string> devices{
      {"llama2_7b", "8"}, {"llama_70b_offload", "16"}, {"offload", "4"},
      {"sdxl_unet", "8"}, {"zero_bubble", "8"},        {"zero_bubble_sweep", "8"}};
  const auto found = devices.find(GetParam());
  const bool forward = GetParam() == "forward";
  const std::string family = forward                             ? "forward"
                             : GetParam() == "gpt2_large_slices" ? "seq1f1b"
                                                                 : "1f1b";
  const Outcome outcome =
      run({(configs() / GetParam()).string() + ".yaml", "--set",
           "cases.devices=" + (found == devices.end() ? "2" : found->second), "--set",
           "cases.microbatches=2", "--set", "plan.families=" + family, "--set",
           "plan.stages_per_rank=1", "--set", forward ? "baselines=forward" : "baselines=gpipe"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex(family + "[^\n]* [*] "));
  const auto left = files("results/" + GetParam());
  for (const char* name :
       {"results.csv", "results.md", "results.tex", "results.json", "report.html"})
    EXPECT_TRUE(left.contains(name)) << name;
  std::size_t plans = 0;
  for (const auto& [name, text] : left) {
    if (!name.ends_with("plan.yaml")) continue;
    ++plans;
    for (const char* file : {"schedule.csv", "split_points.json", "timeline.svg", "trace.json"})
      EXPECT_TRUE(left.contains((std::filesystem::path(name).parent_path() / file).string()))
          << name << " " << file;
  }
  EXPECT_GE(plans, 2u);  // planned and gpipe, in each case
}

INSTANTIATE_TEST_SUITE_P(All, ShippedConfig, ::testing::ValuesIn(shipped_configs()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
                               '_');
                           return name;
                         });

using HandMade = ProgramTest;

// Derived by hand in the config's comment.
TEST_F(HandMade, TwoStagesTakeAsLongAndAsMuchMemoryAsByHand) {
  ASSERT_EQ(run({(configs() / "two_stage.yaml").string(), "--out", "out"}).code, 0);
  for (const char* plan : {"planned", "1f1b"}) {
    EXPECT_EQ(result("out", plan, "estimate_ms"), "21.000000");
    EXPECT_EQ(result("out", plan, "simulate_ms"), "21.000000");
    EXPECT_EQ(result("out", plan, "samples_per_s"), "95.238095");
    EXPECT_EQ(result("out", plan, "bubble_fraction"), "0.428571");
    EXPECT_EQ(result("out", plan, "peak_memory_bytes"), "23000000");
  }
  EXPECT_EQ(result("out", "planned", "family"), "gpipe");
  EXPECT_EQ(read("out/devices=2,microbatches=2/1f1b/schedule.csv"),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0OPTIMIZER_STEP\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1OPTIMIZER_STEP\n");
  EXPECT_THAT(read("out/devices=2,microbatches=2/1f1b/plan.yaml"),
              ::testing::HasSubstr("peak_memory: [23000000 B, 21000000 B]"));
}

// Derived by hand in the config's comment.
TEST_F(HandMade, OffloadingIsAsFastAsRoomForEverything) {
  ASSERT_EQ(run({(configs() / "offload.yaml").string(), "--out", "out"}).code, 0);
  EXPECT_EQ(result("out", "planned", "estimate_ms"), "21000.000000");
  EXPECT_EQ(result("out", "planned", "simulate_ms"), "21000.000000");
  EXPECT_EQ(result("out", "planned", "peak_memory_bytes"), "20000000000");
  EXPECT_THAT(read("out/devices=4,microbatches=4/planned/plan.yaml"),
              ::testing::HasSubstr("offload: [1, 1, 0, 0]"));
  EXPECT_GT(std::stod(result("out", "1f1b_choose", "estimate_ms")), 21000);
}

// The config's comment: rank 0 has all four microbatches away from 4.5 to 9.5 s, 40 GB. Rank 1 does
// F of three before its first B at 8 s, 30 GB. 70 GB are 65.19 GiB.
TEST_F(HandMade, HostsThatAreTooSmallAreNamedWithWhatTheyLack) {
  const auto config = [&](const char* name, const std::string& host, const std::string& plan) {
    write(name,
          "version: 1\nmodel: " + (configs() / "tables/four_layers.csv").string() +
              "\ncluster:\n  file: " + (configs() / "clusters/a100_sxm4_80gb_x8.yaml").string() +
              "\n  set: {device_kinds.a100_sxm4_80gb.host_link: {bandwidth: 20 GB/s}, " + host +
              "}\nbaselines: []\nsimulation: {launch_overhead: 0 us}\n" + plan);
    return run({name, "--out", "out"});
  };
  const std::string searched =
      "cases: {devices: 4, microbatches: 4}\n"
      "plan: {families: 1f1b, stages_per_rank: 1, offload: auto, recompute: none, reserve: 60 "
      "GiB}\n";
  const std::string remedy = "raise host_memory in the cluster file";
  const std::string lack =
      "host 0 needs 65.19 GiB for what its devices offload and has 64.26 GiB (host_memory of the "
      "cluster), so it lacks";
  Outcome outcome = config("small.yaml", "host_memory: 69 GB", searched);
  EXPECT_EQ(outcome.code, 3) << outcome.out;
  for (const std::string& said :
       {std::string("so it lacks 18.59 GiB in the best case found without offloading (1f1b"),
        "proven: no cuts of any of the 2 schedules fit without offloading. With plan.offload: "
        "auto, 1f1b, prefetch=0, offload=1 1 0 0 fits the devices, but " +
            lack})
    EXPECT_THAT(outcome.err, ::testing::HasSubstr(said));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(remedy));
  // Which devices share a host does not depend on whether its memory is known.
  for (const char* limit : {"", "host_memory: 40 GB, "}) {
    outcome = config("own.yaml", std::string(limit) + "devices_per_node: 1", searched);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(result("out", "planned", "host_memory_bytes_of_host"),
              "40000000000 30000000000 0 0 0 0 0 0")
        << limit;
  }
  outcome = config("two.yaml", "devices_per_node: 2", searched);
  EXPECT_EQ(result("out", "planned", "host_memory_bytes_of_host"), "70000000000 0 0 0");
  outcome = config("own.yaml", "host_memory: 40 GB, devices_per_node: 1", searched);
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("host GiB"));
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("1f1b[^\n]* 37[.]3 +0\n"));
  const std::string given =
      "plan: {file: 'out/devices=4,microbatches=4/planned/plan.yaml', reserve: 60 GiB}\n";
  outcome = config("given.yaml", "host_memory: 69 GB", given);
  EXPECT_EQ(outcome.code, 3) << outcome.out;
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("the plan does not fit: " + lack));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(remedy));
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("+0.9 !"));
  EXPECT_EQ(result("out", "planned", "feasible"), "0");
  EXPECT_EQ(config("enough.yaml", "host_memory: 70 GB", given).code, 0);
}

// Qi et al., ICLR 2024: bubble of 1F1B as published; interleaved with all dependencies counted
// 0.1090.
TEST_F(HandMade, TheZeroBubbleSettingHasThePublishedBubbles) {
  ASSERT_EQ(run({(configs() / "zero_bubble.yaml").string(), "--out", "out", "--set",
                 "plan.families=interleaved_1f1b", "--set", "plan.stages_per_rank=3", "--set",
                 "engines=estimate"})
                .code,
            0);
  EXPECT_NEAR(std::stod(result("out", "1f1b", "bubble_fraction")), 0.2431, 0.00005);
  EXPECT_NEAR(std::stod(result("out", "planned", "bubble_fraction")), 0.1090, 0.00005);
}

}  // namespace
}  // namespace pfeife
