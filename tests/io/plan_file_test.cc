
#include "planner/io/plan/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

Plan example_plan() {
  Plan plan;
  plan.model = "models/a \"b\".pt2";
  plan.model_digest = "11";
  plan.cluster = "clusters/c.yaml";
  plan.cluster_digest = "22";
  plan.training = {Precision::Tf32, Optimizer::AdamW, 24};
  plan.partition.cuts = {3};
  plan.cut_modules = {"encoder.layer.3: x"};
  plan.cut_nodes = {17};
  plan.spec = {.family = "looped",
               .ranks = 2,
               .microbatches = 1,
               .stages_per_rank = 1,
               .loop_batch = 1,
               .prefetch = {1, 0}};
  plan.placement = round_robin(2, 2);
  plan.placement.device_of_rank = {DeviceId{1}, DeviceId{0}};
  plan.schedule = read_schedule("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "s");
  plan.activations.stages = {false, false};
  plan.estimate = Nanoseconds{1234567};
  plan.peak_memory = {Bytes{100}, Bytes{200}};
  plan.files = PlanFiles{.model = {.file = "../a.json"}, .cluster = "../c.yaml"};
  plan.files->model.format = ModelFormat::Piper, plan.files->model.time_unit = Nanoseconds{1000};
  plan.bound = Bound{.time = Nanoseconds{1000000},
                     .given_cuts = true,
                     .least_share = 0.002,
                     .linked = true,
                     .recompute = Recompute::Choose,
                     .schedules = {plan.spec, {"gpipe", 2, 1, 1, {}, {}}},
                     .memory_limit = {Bytes{300}, Bytes{400}},
                     .uncertified = "other things"};
  plan.found = {{"by", "search"}, {"program", "pfeife 0"}};
  return plan;
}

class PlanFile : public ::testing::Test {
 protected:
  void SetUp() override { write_plan(folder_, example_plan()); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The error after `from` in plan.yaml became `to`, without the folder.
  std::string error_after(const std::string& from, const std::string& to) {
    std::string text = read_file(folder_ / "plan.yaml");
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write_file(folder_ / "plan.yaml", text.replace(at, from.size(), to));
    try {
      read_plan(folder_ / "plan.yaml");
    } catch (const ConfigError& error) {
      return std::string(error.what()).substr(folder_.string().size() + 1);
    }
    return "no error";
  }

  std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) /
                                  ("pfeife_plan_file." + std::to_string(::getpid()));
};

TEST_F(PlanFile, KeepsWhatIsNotCertifiedOfItsBound) {
  Plan plan = example_plan();
  plan.bound->uncertified = "the other microbatch sizes of the global batch: 1, 2";
  write_plan(folder_, plan);
  EXPECT_EQ(read_plan(folder_ / "plan.yaml"), plan);
  EXPECT_THAT(
      read_file(folder_ / "plan.yaml"),
      HasSubstr("  uncertified: \"the other microbatch sizes of the global batch: 1, 2\"\n"));
}

TEST_F(PlanFile, KeepsTheSchedulesAndLimitsThatItsBoundCovers) {
  Plan plan = example_plan();
  const auto spec = [&](const char* family, std::size_t stages_per_rank) {
    ScheduleSpec made = plan.spec;
    made.family = family, made.stages_per_rank = stages_per_rank, made.loop_batch = {},
    made.prefetch = {};
    return made;
  };
  plan.bound->schedules = {spec("1f1b", 1), spec("looped", 3), spec("looped", 12), plan.spec};
  plan.bound->schedules[1].loop_batch = 8;
  plan.bound->schedules[2].prefetch = {1, 20};
  plan.bound->memory_limit = {Bytes{7}, Bytes{800}};
  write_plan(folder_, plan);
  EXPECT_EQ(read_plan(folder_ / "plan.yaml"), plan);
  const std::string text = read_file(folder_ / "plan.yaml");
  EXPECT_THAT(text, HasSubstr("\"looped, V=12, prefetch=1,20\""));
  for (const char* wrong : {"looped", "looped, 12", "looped, V=", "looped, V=x", "looped, V=12, 3",
                            "looped, V=12, prefetch=1,x", "looped, V=12, loop_batch="}) {
    write_file(folder_ / "plan.yaml", text);
    EXPECT_MESSAGE(error_after("looped, V=12, prefetch=1,20", wrong));
  }
}

TEST_F(PlanFile, KeepsAPlacementOfItsOwn) {
  Plan plan = example_plan();
  plan.spec = {.family = "zb_greedy",
               .ranks = 2,
               .microbatches = 1,
               .stages_per_rank = 1,
               .rank_of_stage = {RankId{1}, RankId{0}}};
  plan.placement.rank_of_stage = plan.spec.rank_of_stage;
  plan.schedule = read_schedule("1RECV_F0,1F0,1B0,1SEND_B0\n0F0,0SEND_F0,0RECV_B0,0B0\n", "s");
  plan.bound->schedules.pop_back();  // those it covers have the placements of their families
  plan.bound->schedules.front() = {"gpipe", 2, 1, 1, {}, {}};
  write_plan(folder_, plan);
  EXPECT_EQ(read_plan(folder_ / "plan.yaml"), plan);
  EXPECT_EQ(schedule_name(plan.spec), "zb_greedy, ranks=1 0");
  EXPECT_EQ(plan.spec.stages(), 2u);
  EXPECT_THAT(error_after("  rank_of_stage: [1, 0]\n  file", "  rank_of_stage: [0, 1]\n  file"),
              HasSubstr("`placement` has other ranks"));
}

TEST_F(PlanFile, ReadsBackAsTheSamePlan) {
  EXPECT_EQ(read_plan(folder_ / "plan.yaml"), example_plan());
}

TEST_F(PlanFile, KeepsTheOrderOfTheNodes) {
  Plan plan = example_plan();
  plan.linear_order = "depth_first";
  for (const int n : {0, 1, 2, 5, 4, 3, 6, 7}) plan.node_order.emplace_back(n);
  write_plan(folder_, plan);
  EXPECT_THAT(read_file(folder_ / "plan.yaml"), HasSubstr("node_order: \"0-2 5 4 3 6-7\"\n"));
  EXPECT_EQ(read_plan(folder_ / "plan.yaml"), plan);
  EXPECT_MESSAGE(error_after("0-2 5", "0-2 5-"));
  EXPECT_MESSAGE(error_after("0-2 5-", "2-0 5"));
}

TEST_F(PlanFile, IsWrittenForPeople) {
  EXPECT_EQ(plan_text(example_plan(), "33"),
            R"(version: 3
model:
  file: "models/a \"b\".pt2"
  digest: "11"
cluster:
  file: "clusters/c.yaml"
  digest: "22"
order: "captured"
training:
  precision: tf32
  optimizer: adamw
  microbatch_size: 24
microbatches: 1
cuts: [3]
cut_modules: ["encoder.layer.3: x"]
cut_nodes: [17]
schedule:
  family: "looped"
  stages_per_rank: 1
  loop_batch: 1
  prefetch: [1, 0]
  file: "schedule.csv"
  digest: "33"
placement:
  rank_of_stage: [0, 1]
  device_of_rank: [1, 0]
recompute: [false, false]
predicted:
  step: 1234567 ns
  peak_memory: [100 B, 200 B]
files:
  model: "../a.json"
  format: piper
  time_unit: 1000 ns
  cluster: "../c.yaml"
bound:
  time: 1000000 ns
  cuts: given
  least_share: 0.002
  linked: true
  recompute: choose
  schedules: ["looped, V=1, loop_batch=1, prefetch=1,0", "gpipe, V=1"]
  memory_limit: [300 B, 400 B]
  uncertified: "other things"
found:
  by: "search"
  program: "pfeife 0"
)");
}

TEST_F(PlanFile, RefusesAScheduleThatIsNotItsOwn) {
  write_file(folder_ / "schedule.csv", "0F0\n");
  EXPECT_MESSAGE(error_after("", ""));
}

TEST_F(PlanFile, RefusesPartsThatDoNotFitTogether) {
  EXPECT_MESSAGE(error_after("cuts: [3]", "cuts: [3, 5]"));
}

TEST_F(PlanFile, RefusesListsOfOtherLengthsThanItsCutsAndStages) {
  EXPECT_MESSAGE(error_after("cut_nodes: [17]", "cut_nodes: [17, 19]"));
  EXPECT_THAT(error_after("cut_nodes: [17, 19]", "cut_nodes: [17]"), "no error");
  EXPECT_MESSAGE(error_after("recompute: [false, false]", "recompute: [true]"));
}

TEST_F(PlanFile, NamesTheLayersAndNodesOfRecomputedBlocks) {
  Plan plan = example_plan();
  plan.activations.blocks = {{LayerId{0}, LayerId{1}}, {LayerId{4}, LayerId{4}}};
  plan.block_nodes = {{-1, 9}, {17, 20}};
  write_plan(folder_, plan);
  EXPECT_THAT(read_file(folder_ / "plan.yaml"),
              HasSubstr("recompute: [false, false]\nrecompute_blocks:"));
  Plan read = read_plan(folder_ / "plan.yaml");
  EXPECT_EQ(read.activations.blocks, plan.activations.blocks);
  EXPECT_EQ(read.block_nodes, plan.block_nodes);
  EXPECT_EQ(plan_text(read, ""), plan_text(plan, ""));
  EXPECT_MESSAGE(error_after("cuts: [3]", "cuts: [0]"));
  EXPECT_THAT(error_after("cuts: [0]", "cuts: [3]"), "no error");
  EXPECT_MESSAGE(error_after("recompute: [false, false]", "recompute: [true, false]"));
}

TEST_F(PlanFile, KeepsThatTheLastMicrobatchIsNotRecomputed) {
  Plan plan = example_plan();
  EXPECT_EQ(plan_text(plan, "").find("except_last"), std::string::npos);
  plan.activations.stages = {true, false}, plan.activations.except_last = true;
  write_plan(folder_, plan);
  EXPECT_THAT(read_file(folder_ / "plan.yaml"),
              HasSubstr("recompute: [true, false]\nrecompute_except_last: true\n"));
  EXPECT_EQ(read_plan(folder_ / "plan.yaml"), plan);
  EXPECT_MESSAGE(error_after("recompute_except_last: true", "recompute_except_last: 2"));
  EXPECT_THAT(error_after("recompute_except_last: 2", "recompute_except_last: true"), "no error");
  EXPECT_MESSAGE(error_after("recompute: [true, false]", "recompute: [false, false]"));
}

TEST_F(PlanFile, SaysWhatShareEachStageOffloads) {
  Plan plan = example_plan();
  EXPECT_EQ(plan_text(plan, "").find("offload"), std::string::npos);
  plan.activations.offload = {0.5, 0};
  EXPECT_EQ(knobs(plan), "loop_batch=1, prefetch=1,0, offload=0.5 0");
  write_plan(folder_, plan);
  EXPECT_THAT(read_file(folder_ / "plan.yaml"), HasSubstr("offload: [0.5, 0]\n"));
  EXPECT_EQ(read_plan(folder_ / "plan.yaml"), plan);
  EXPECT_THAT(error_after("offload: [0.5, 0]", "offload: [0.5]"),
              HasSubstr("expected one share for each of 2 stages"));
  EXPECT_THAT(error_after("offload: [0.5]", "offload: [0.5, 1.5]"), HasSubstr("0 to 1"));
}

TEST_F(PlanFile, SaysThatMessagesAreReceivedLate) {
  Plan plan = example_plan();
  EXPECT_EQ(plan_text(plan, "").find("receives"), std::string::npos);
  plan.receives = Receives::AtNeed;
  write_plan(folder_, plan);
  EXPECT_THAT(read_file(folder_ / "plan.yaml"), HasSubstr("\nreceives: at_need\n"));
  EXPECT_EQ(read_plan(folder_ / "plan.yaml"), plan);
  EXPECT_THAT(error_after("receives: at_need", "receives: late"),
              HasSubstr("receives: found \"late\". Allowed: as_ready, at_need"));
}

TEST_F(PlanFile, RefusesVersionsThatItDoesNotKnow) {
  EXPECT_MESSAGE(error_after("version: 3", "version: 4"));
  EXPECT_MESSAGE(error_after("version: 4", "version: 1"));
}

TEST_F(PlanFile, SaysTheNewNameOfAnOldKey) {
  EXPECT_MESSAGE(error_after("stages_per_rank: 1", "loops: 1"));
}

TEST_F(PlanFile, RefusesOtherNumbersOfMicrobatches) {
  EXPECT_MESSAGE(error_after("microbatches: 1", "microbatches: 2"));
}

TEST_F(PlanFile, RefusesStagesOnOtherRanks) {
  EXPECT_MESSAGE(error_after("rank_of_stage: [0, 1]", "rank_of_stage: [1, 0]"));
  EXPECT_MESSAGE(error_after("rank_of_stage: [1, 0]", "rank_of_stage: [0, 2]"));
}

TEST_F(PlanFile, RefusesStagesARankThatThePlacementHasNotAndADeviceForTwoRanks) {
  EXPECT_MESSAGE(error_after("stages_per_rank: 1", "stages_per_rank: 2"));
  EXPECT_MESSAGE(error_after("device_of_rank: [1, 0]", "device_of_rank: [1, 1]"));
}

TEST_F(PlanFile, RefusesASchedulePathThatLeavesTheFolder) {
  EXPECT_MESSAGE(error_after("file: \"schedule.csv\"", "file: \"../schedule.csv\""));
}

}  // namespace
}  // namespace pfeife
