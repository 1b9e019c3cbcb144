// Proof is proof: bounds and proven optima against brute force over all cuts.
#include <gtest/gtest.h>

#include <limits>

#include "planner/search/branch_and_bound.h"
#include "tests/search/random_instance.h"

namespace pfeife {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Proves the instance's only schedule step by step; true if a bound was ever above the optimum.
bool bound_is_wrong(const Instance& instance, const BranchAndBound::Settings& settings) {
  const Problem problem = instance.problem();
  const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
  const ScheduleSpec& spec = instance.schedules[0];
  if (model.last() < static_cast<std::int32_t>(spec.stages())) return false;
  const Best best = brute_force(problem, spec);
  Candidates candidates(model, problem, spec);
  BranchAndBound proof(candidates, settings);
  // Where only cuts tried one by one count, a region that is closed by its bound is closed for good.
  const double target = settings.minima ? kInfinite : best.time + 1;
  proof.bound_root(target);
  for (int step = 0; step < 20000 && !proof.closed(); ++step) {
    if (proof.bound() > best.time) return true;
    proof.run(1, target);
  }
  if (!settings.minima) return !proof.closed() || candidates.best_time() != best.time;
  return !proof.closed() || proof.bound() > best.time || candidates.best_time() != best.time;
}

TEST(BranchAndBound, NeverBoundsAboveTheBruteForceOptimumAndProvesIt) {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round)
    ASSERT_FALSE(bound_is_wrong(random_instance(random, 1, round % 2 ? 0.5 : 0),
                                {.enumerate = round % 4 < 2 ? 1U : 512U, .minima = round % 3 > 0}))
        << round;
}

TEST(BranchAndBound, BoundsThatAreTooLargeAreNoticed) {
  const auto noticed = [](double inflation) {
    std::mt19937 random(5);
    int count = 0;
    for (int round = 0; round < 400; ++round)
      count += bound_is_wrong(random_instance(random, 1, 0),
                              {.enumerate = 1, .inflation = inflation, .minima = false});
    return count;
  };
  EXPECT_EQ(noticed(1), 0);
  EXPECT_GT(noticed(1.002), 150) << "0.2 % too large, of 400";
}

/// Times never rise with the work done, no bound is above the optimum, and both end at the plan.
void expect_history(const SearchOutcome& outcome) {
  ASSERT_FALSE(outcome.history.empty());
  SearchStep before;
  for (const SearchStep& step : outcome.history) {
    EXPECT_GE(step.candidates, before.candidates);
    if (before.best) {
      EXPECT_LE(*step.best, *before.best);
    }
    if (step.bound) {
      EXPECT_LE(*step.bound, outcome.plans[0].estimate);
    }
    before = step;
  }
  EXPECT_EQ(before, (SearchStep{outcome.candidates, outcome.plans[0].estimate,
                                outcome.bound->time}));
}

TEST(Search, EqualsBruteForceOverCutsAndSchedulesOnAThousandRandomProblems) {
  std::mt19937 random(17);
  int infeasible = 0, feasible = 0, split_backward = 0, three_loops = 0;
  for (int round = 0; round < 1000; ++round) {
    const Instance instance = random_instance(random, 3);
    const Problem problem = instance.problem();
    double best = kInfinite;
    for (const ScheduleSpec& spec : instance.schedules) {
      best = std::min(best, brute_force(problem, spec).time);
      split_backward += spec.family.starts_with("zb");
      three_loops += spec.loops == 3;
    }
    SearchOptions options;
    options.iterations = 30;
    const SearchOutcome outcome = search(problem, options);
    if (best == kInfinite) {
      ++infeasible;
      ASSERT_TRUE(outcome.plans.empty()) << round;
      if (outcome.infeasible) {
        EXPECT_TRUE(outcome.infeasible->proven) << round;
      }
      continue;
    }
    ++feasible;
    ASSERT_FALSE(outcome.plans.empty()) << round;
    EXPECT_EQ(static_cast<double>(outcome.plans[0].estimate.count()), best) << round;
    ASSERT_TRUE(outcome.bound) << round;
    EXPECT_EQ(outcome.bound->time, outcome.plans[0].estimate) << round;
    expect_history(outcome);
    for (std::size_t r = 0; r < problem.memory_limit.size(); ++r)
      EXPECT_LE(outcome.plans[0].peak_memory[r], problem.memory_limit[r]);
  }
  EXPECT_GT(infeasible, 100);
  EXPECT_GT(feasible, 500);
  EXPECT_GT(split_backward, 100);
  EXPECT_GT(three_loops, 100);
}

}  // namespace
}  // namespace pfeife
