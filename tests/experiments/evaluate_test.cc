// Candidates through both engines: the example that configs/two_stage.yaml works out by hand, and
// schedules that cannot run.
#include "experiments/plans/evaluate.h"

#include <gmock/gmock.h>

#include <regex>

#include "experiments/plans/case_record.h"
#include "experiments/plans/plan_case.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/model/imported_layers.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/error.h"
#include "planner/schedules/families.h"
#include "planner/search/search.h"
#include "sim/simulator.h"
#include "tests/experiments/program.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TwoStages : public ::testing::Test {
 protected:
  TwoStages()
      : layers(read_layer_table(configs() / "tables" / "two_stage.csv", std::nullopt)),
        cluster(read_cluster(configs() / "clusters" / "laptop.yaml")) {
    config.name = "two stages";
    config.devices = config.microbatches = 2;
    config.simulation.launch_overhead = Nanoseconds{0};
  }
  void SetUp() override {
    if (!simulator_available()) GTEST_SKIP() << "built without SimGrid";
  }
  CaseInputs inputs() const { return {&config, &layers, &cluster}; }
  static Plan choices(const std::string& family) {
    const ScheduleSpec spec{family, 2, 2, 1, {}, {}};
    return plan_of({{spec, {{0}}, placement_for(spec)}});
  }
  Evaluation estimated(const std::string& family) const {
    return estimated_plan(inputs(), Origin::Search, kPlanned, choices(family), false);
  }
  static std::vector<std::int64_t> peaks(const Trace& trace) {
    std::vector<std::int64_t> bytes;
    for (std::int64_t r = 0; r < 2; ++r) bytes.push_back(peak_memory(trace, RankId{r}).value);
    return bytes;
  }

  Request config;
  Layers layers;
  Cluster cluster;
};

TEST_F(TwoStages, BothEnginesGiveTheStepAndTheMemoryByHand) {
  for (const auto& [family, second] : {std::pair{"gpipe", 23'000'000}, {"1f1b", 21'000'000}}) {
    Evaluation plan = estimated(family);
    simulate_plans(std::array{&plan}, 1);
    EXPECT_EQ(step_time(plan.estimated), milliseconds{21});
    ASSERT_TRUE(plan.simulated);
    EXPECT_EQ(step_time(*plan.simulated), milliseconds{21});
    EXPECT_THAT(plan.plan.peak_memory, ElementsAre(Bytes{23'000'000}, Bytes{second}));
    EXPECT_THAT(peaks(plan.estimated), ElementsAre(23'000'000, second));
    EXPECT_THAT(peaks(*plan.simulated), ElementsAre(23'000'000, second));
    EXPECT_FALSE(plan.estimated_spread || plan.simulated_spread) << "nothing varies";
    EXPECT_FALSE(p95(plan));
  }
}

// Every path from rank 0's F0 to its optimizer step has seven computations, whichever way it goes
// from one rank to the other and back.
TEST_F(TwoStages, LaunchesAreOfTheSimulationAlone) {
  config.simulation.launch_overhead = milliseconds{1};
  Evaluation plan = estimated("gpipe");
  simulate_plans(std::array{&plan}, 1);
  EXPECT_EQ(step_time(plan.estimated), milliseconds{21});
  EXPECT_EQ(step_time(*plan.simulated), milliseconds{21 + 7});
}

TEST_F(TwoStages, WhatIsNotToBeSimulatedIsNot) {
  config.simulate = false;
  Evaluation plan = estimated("gpipe");
  simulate_plans(std::array{&plan}, 1);
  EXPECT_FALSE(plan.simulated);
}

// The 95th percentile of either engine is that of its own runs, and the simulation's goes first.
TEST_F(TwoStages, UnderJitterEachEngineHasItsPercentiles) {
  config.simulation.jitter = JitterSettings{.cv = 0.2, .repetitions = 40};
  config.simulation.launch_overhead = milliseconds{1};
  Evaluation plan = estimated("gpipe");
  ASSERT_TRUE(plan.estimated_spread);
  EXPECT_EQ(p95(plan), plan.estimated_spread->p95);
  simulate_plans(std::array{&plan}, 1);
  ASSERT_TRUE(plan.simulated_spread);
  EXPECT_EQ(p95(plan), plan.simulated_spread->p95);
  for (const Spread& spread : {*plan.estimated_spread, *plan.simulated_spread}) {
    EXPECT_LT(spread.p5, spread.median);
    EXPECT_LT(spread.median, spread.p95);
  }
  // Both draw the same factors, nothing shares a link: only the seven launches are between them.
  EXPECT_EQ(plan.simulated_spread->median - plan.estimated_spread->median, milliseconds{7});
}

// Runs without variation are one run: its step is every percentile of its engine.
TEST_F(TwoStages, WithoutVariationEveryPercentileIsTheEnginesStep) {
  config.simulation.jitter = JitterSettings{.cv = 0, .repetitions = 40};
  config.simulation.launch_overhead = milliseconds{1};
  Evaluation plan = estimated("gpipe");
  simulate_plans(std::array{&plan}, 1);
  const Nanoseconds simulated = step_time(*plan.simulated), estimate = step_time(plan.estimated);
  EXPECT_EQ(simulated - estimate, milliseconds{7});  // seven launches
  ASSERT_TRUE(plan.simulated_spread);
  EXPECT_EQ(plan.simulated_spread->p5, simulated);
  EXPECT_EQ(plan.simulated_spread->p95, simulated);
  EXPECT_EQ(plan.estimated_spread->p95, estimate);
  EXPECT_EQ(row_of(plan).simulate_p95, simulated);
}

TEST_F(TwoStages, APlanSaysWhatItIsForAndHowItWasFound) {
  config.model.file = "models/two_stage.csv";
  config.file_names["cluster"] = "laptop.yaml";
  config.training.precision = Precision::Bf16Amp;
  const auto by = [&](Origin origin) {
    const Plan plan = estimated_plan(inputs(), origin, kPlanned, choices("gpipe"), false).plan;
    EXPECT_EQ(plan.model, "two_stage.csv");
    EXPECT_EQ(plan.cluster, "laptop.yaml");
    EXPECT_EQ(plan.training, (Training{Precision::Bf16Amp, Optimizer::Adam, 1}));
    return plan.found.at("by");
  };
  EXPECT_EQ(by(Origin::Search), "search");
  EXPECT_EQ(by(Origin::Reference), "reference mode");
  EXPECT_EQ(by(Origin::PlanFile), "given plan");
  EXPECT_EQ(by(Origin::ScheduleFile), "given schedule and cuts");
}

TEST_F(TwoStages, TheBoundIsOfTheSearchsPlanAlone) {
  config.plan.families = {"gpipe"};
  config.plan.stages_per_rank = {1};
  config.baselines = {{"1f1b"}};
  const EvaluatedCase found = plan_case(inputs(), {}, 1, 1);
  const Plan &planned = found.planned.at(0).plan, &baseline = found.baselines.at(0).plan;
  ASSERT_TRUE(planned.bound);
  EXPECT_EQ(planned.bound->time, milliseconds{21}) << "there is one way to cut";
  EXPECT_GT(std::stoul(planned.found.at("candidates")), 0u);
  EXPECT_FALSE(baseline.bound || baseline.found.contains("candidates"));
}

TEST_F(TwoStages, ADeadlockIsAFailureThatNamesThePlan) {
  Plan plan = choices("1f1b");
  plan.schedule = read_schedule(
      "0RECV_B0,0B0,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
      "test");
  const auto estimate = [&] {
    return estimated_plan(inputs(), Origin::Search, kPlanned, plan, true);
  };
  EXPECT_MESSAGE(message_of<RuntimeFault>(estimate));
  // Both ranks send before they receive, which queues of pairs do not allow.
  plan.schedule = read_schedule(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
      "test");
  Evaluation queued = estimate();
  EXPECT_MESSAGE(message_of<RuntimeFault>([&] { simulate_plans(std::array{&queued}, 1); }));
}

class GivenRows : public ProgramTest {};

// Rows with transfers that a user has, without REDUCE_NORM.
TEST_F(GivenRows, HaveTheNormThatASearchedPlanHas) {
  const std::filesystem::path folder = "devices=2,microbatches=4/planned";
  for (const std::string training : {"precision: fp16_amp", "clip_norm: 1"}) {
    SCOPED_TRACE(training);
    const std::string head = "version: 1\nmodel: " + (configs() / "models/tiny_gpt.pt2").string() +
                             "\ncluster: " + (configs() / "clusters/laptop.yaml").string() +
                             "\nbaselines: []\ntraining: {" + training + "}\n";
    write("found.yaml", head +
                            "cases: {devices: 2, microbatches: 4}\n"
                            "plan: {families: [1f1b], stages_per_rank: [1], cuts: [12]}\n");
    ASSERT_EQ(run({"found.yaml", "--out", "found"}).code, 0);
    const std::string rows = read("found" / folder / "schedule.csv");
    EXPECT_THAT(rows, HasSubstr(",0REDUCE_NORM,0OPTIMIZER_STEP"));
    write("bare.csv", std::regex_replace(rows, std::regex(",[0-9]+REDUCE_NORM"), ""));
    write("given.yaml", head + "plan: {schedule: bare.csv, cuts: [12]}\n");
    const Outcome given = run({"given.yaml", "--out", "given"});
    ASSERT_EQ(given.code, 0) << given.err;
    EXPECT_EQ(read("given" / folder / "schedule.csv"), rows);
    EXPECT_THAT(read("given" / folder / "trace.json"), HasSubstr("REDUCE_NORM"));
    for (const char* column : {"estimate_ms", "simulate_ms"})
      EXPECT_EQ(result("given", "planned", column), result("found", "planned", column));
    std::filesystem::remove_all(folder_ / "found");
    std::filesystem::remove_all(folder_ / "given");
  }
}

}  // namespace
}  // namespace pfeife
