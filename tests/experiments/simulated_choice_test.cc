// Plans that are chosen by what is simulated.
#include "experiments/plans/simulated_choice.h"

#include <gtest/gtest.h>

#include "experiments/plans/plan_case.h"
#include "planner/cost/estimate/memory.h"
#include "planner/ir/judge/validate.h"
#include "sim/simulator.h"
#include "tests/experiments/random_hosts.h"

namespace pfeife {
namespace {

class SimulatedChoice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!simulator_available()) GTEST_SKIP() << "built without SimGrid";
  }
  /// As the program does it.
  static EvaluatedCase computed(const CaseInputs& inputs) {
    EvaluatedCase evaluated = plan_case(inputs, {}, 5, 1);
    simulate_cases(std::span(&evaluated, 1), 1);
    return evaluated;
  }
};

/// The plan with its messages in the order of lower(), simulated.
Evaluation in_first_order(const Evaluation& plan) {
  Plan choices = plan.plan;
  for (std::vector<Cell>& row : choices.schedule.rows)
    std::erase_if(row, [](const Cell& cell) {
      const auto* action = std::get_if<Action>(&cell);
      return action != nullptr && !is_compute(action->op);
    });
  Evaluation before =
      estimated_plan(plan.inputs, plan.origin, plan.name, std::move(choices), false);
  Evaluation* const one = &before;
  simulate_plans(std::span(&one, 1), 1);
  return before;
}

TEST_F(SimulatedChoice, NoPlanIsSimulatedSlowerThanABaselineOfItsTable) {
  std::size_t compared = 0, slower_by_estimate = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    RandomShape shape;
    shape.layers = 12 + random() % 8;
    const Layers layers = random_layers(random, shape);
    Request config;
    config.name = "seed " + std::to_string(seed);
    config.devices = 2 + 2 * (random() % 2);
    config.microbatches = 2 + random() % 6;
    Cluster cluster = random_hosts(random, config.devices);
    cluster.kinds[0].memory =
        Bytes{random() % 2 == 0 ? std::int64_t{1} << 30
                                : static_cast<std::int64_t>(4000 + random() % 6000)};
    config.plan.iterations = 1 + random() % 2;
    config.baselines = {{"gpipe"},      {"1f1b"}, {"interleaved_1f1b"},
                        {"looped_bfs"}, {"zbv"},  {"zb_greedy"}};
    config.simulation.launch_overhead = Nanoseconds{random() % 20};
    config.simulation.queues = static_cast<Queues>(random() % 4);
    config.select_by = SelectBy::Simulate;
    config.plan.as_fast = 0;  // else it may be slower by so much
    const EvaluatedCase found = computed({&config, &layers, &cluster});
    const Evaluation& planned = found.planned[found.chosen];
    const Evaluation& first = found.planned.front();
    const Nanoseconds by_estimate =
        first.possible() ? step_time(*in_first_order(first).simulated) : Nanoseconds{0};
    for (const Evaluation& baseline : found.baselines) {
      if (!baseline.fits()) continue;
      ASSERT_TRUE(planned.fits()) << config.name;
      EXPECT_LE(step_time(*planned.simulated), step_time(*baseline.simulated))
          << config.name << ", " << baseline.name;
      ++compared;
      slower_by_estimate += by_estimate > step_time(*baseline.simulated);
    }
  }
  EXPECT_GT(compared, 15u);
  EXPECT_GT(slower_by_estimate, 0u) << "links that bind nowhere show nothing";
}

TEST_F(SimulatedChoice, AnOrderOfMessagesIsKeptOnlyIfThePlanIsSimulatedFasterWithIt) {
  std::size_t kept = 0, left = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    RandomShape shape;
    shape.layers = 12 + random() % 8;
    const Layers layers = random_layers(random, shape);
    Request config;
    config.name = "seed " + std::to_string(seed);
    config.devices = 4;
    config.microbatches = 4 + random() % 5;
    Cluster cluster = random_hosts(random, config.devices);
    cluster.kinds[0].memory =
        Bytes{random() % 2 == 0 ? std::int64_t{1} << 30
                                : static_cast<std::int64_t>(6000 + random() % 6000)};
    config.plan.iterations = 1;
    config.simulation.queues = static_cast<Queues>(random() % 4);
    config.select_by = SelectBy::Simulate;
    const EvaluatedCase found = computed({&config, &layers, &cluster});
    for (const Evaluation& plan : found.planned) {
      if (!plan.possible()) continue;
      const Evaluation before = in_first_order(plan);
      EXPECT_EQ(plan.plan.estimate, before.plan.estimate);
      if (!plan.plan.found.contains("messages")) {
        EXPECT_EQ(plan.plan.schedule, before.plan.schedule) << config.name;
        ++left;
        continue;
      }
      ++kept;
      EXPECT_LT(step_time(*plan.simulated), step_time(*before.simulated)) << config.name;
      EXPECT_TRUE(plan.fits()) << config.name;
      EXPECT_TRUE(
          validate(plan.plan.schedule, {stage_graph(plan.costs), config.microbatches}).empty());
      EXPECT_EQ(plan.plan.peak_memory,
                peak_memory(plan.plan.schedule, plan.costs, plan.plan.placement));
    }
  }
  EXPECT_GT(kept, 5u);
  EXPECT_GT(left, 5u);
}

// A plan that came from a baseline is named as the searched point that it is, so that the proof of
// the bound speaks of it: looped without knobs is looped with the first of its prefetches.
TEST_F(SimulatedChoice, EveryPlanIsOfAScheduleThatItsBoundCovers) {
  std::size_t compared = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    RandomShape shape;
    shape.layers = 8 + random() % 4;
    const Layers layers = random_layers(random, shape);
    Request config;
    config.devices = 2;
    config.microbatches = 2 + random() % 6;
    Cluster cluster = random_hosts(random, config.devices);
    cluster.kinds[0].memory = Bytes{std::int64_t{1} << 30};
    config.plan.families = {"looped", "looped_bfs"};
    config.plan.stages_per_rank = {1, 2};
    config.plan.iterations = 1;
    config.baselines = {{"looped"}, {"looped_bfs"}};
    config.select_by = SelectBy::P95;
    const EvaluatedCase found = computed({&config, &layers, &cluster});
    for (const Evaluation& plan : found.planned) {
      if (!plan.fits()) continue;
      ++compared;
      EXPECT_NE(std::ranges::find(plan.plan.bound->schedules, plan.plan.spec),
                plan.plan.bound->schedules.end())
          << plan.plan.spec.family << " " << knobs(plan.plan.spec);
    }
  }
  EXPECT_GT(compared, 20u);
}

TEST_F(SimulatedChoice, SaysWhereTheBudgetEndedBeforeTheSearchForBetterPlansDid) {
  std::size_t unfinished = 0, finished = 0;
  for (unsigned seed = 0; seed < 3; ++seed) {
    std::mt19937 random(seed);
    const Layers layers = random_layers(random, {.layers = 12});
    Cluster cluster = random_hosts(random, 4);
    cluster.kinds[0].memory = Bytes{std::int64_t{1} << 30};
    Request config;
    config.devices = 4;
    config.microbatches = 8;
    config.select_by = SelectBy::Simulate;
    const auto said = [&](std::size_t effort) {
      config.plan.iterations = effort;
      return computed({&config, &layers, &cluster}).answer().unfinished.size();
    };
    unfinished += said(1);
    finished += said(100) == 0;
  }
  EXPECT_GT(unfinished, 0u);
  EXPECT_GT(finished, 0u);
}

}  // namespace
}  // namespace pfeife
