// The steps of a search, one by one: none loses what those before it have found, and each may be
// left out.
#include <gtest/gtest.h>

#include <set>

#include "tests/search/random_instance.h"

namespace pfeife {
namespace {

/// Orders built for the costs, too, and memory that binds in some.
Instance mixed_instance(std::mt19937& random) {
  Instance instance = random_instance(random, 3);
  const ScheduleSpec listed = instance.schedules[0];
  if (random() % 2 == 0)
    instance.schedules.push_back({"zb_greedy", listed.ranks, listed.microbatches, 1, {}, {}});
  if (random() % 3 == 0) instance.recompute = Recompute::Choose;
  if (random() % 3 == 0) instance.norm = StepNorm::Finite;
  return instance;
}

TEST(SearchSteps, NoneMakesTheBestPlanSlowerOrTheBoundLower) {
  std::mt19937 random(61);
  std::set<std::string_view> told;
  int faster = 0, higher = 0;
  for (int round = 0; round < 60; ++round) {
    const Instance instance = mixed_instance(random);
    SearchOptions options{.iterations = 30};
    std::optional<SearchStepDone> before;
    options.after_step = [&](const SearchStepDone& step) {
      told.insert(step.name);
      EXPECT_GE(step.seconds, 0);
      if (before && before->best) {
        ASSERT_TRUE(step.best) << step.name;
        EXPECT_LE(*step.best, *before->best) << round << ": " << step.name;
        faster += *step.best < *before->best;
      }
      // Where rows that cannot hang are not known to fit, or a choice may be better, the bound is
      // one of the plans that were left open.
      if (before && before->bound && before->best && *before->bound < *before->best) {
        ASSERT_TRUE(step.bound) << step.name;
        EXPECT_GE(*step.bound, *before->bound) << round << ": " << step.name;
        higher += *step.bound > *before->bound;
      }
      before = step;
    };
    const Answer outcome = search(instance.problem(), options);
    if (!outcome.plans.empty()) {
      EXPECT_EQ(outcome.plans[0].estimate, *before->best) << round;
    }
  }
  const std::vector<std::string_view> all = search_steps();
  EXPECT_EQ(told, std::set(all.begin(), all.end()));
  EXPECT_GT(faster, 10);
  EXPECT_GT(higher, 10);
}

// Effort is about time: a figure that stands for a tenth of it looks as if nothing went on.
TEST(SearchSteps, TellOfProgressAtLeastEveryTenthOfTheEffort) {
  for (const std::size_t effort : {30, 125}) {
    std::mt19937 random(71);
    int whole = 0;  // searches that do not end by their bound
    for (int round = 0; round < 30 && whole < 2; ++round) {
      std::vector<double> shares{0};
      const SearchOptions options{.iterations = effort,
                                  .progress = [&](double share) { shares.push_back(share); }};
      if (search(mixed_instance(random).problem(), options).effort != effort) continue;
      ++whole;
      EXPECT_TRUE(std::ranges::is_sorted(shares)) << effort;
      EXPECT_DOUBLE_EQ(shares.back(), 1) << effort;
      const double first = 20.0 / (20 + static_cast<double>(effort));  // before the first span
      for (std::size_t i = 1; i < shares.size(); ++i)
        EXPECT_LE(shares[i] - shares[i - 1], std::max(0.1, first)) << effort << ": " << shares[i];
    }
    EXPECT_EQ(whole, 2) << effort;
  }
}

TEST(SearchSteps, EachMayBeLeftOutAndPlanAndBoundAreStillRight) {
  std::mt19937 random(67);
  int plans = 0;
  for (int round = 0; round < 12; ++round) {
    Instance instance = random_instance(random, 2);
    double least = std::numeric_limits<double>::infinity();
    for (const ScheduleSpec& spec : instance.schedules)
      least = std::min(least, brute_force(instance.problem(), spec).time);
    if (round % 3 == 0)
      instance.schedules.push_back({"zb_greedy",
                                    instance.schedules[0].ranks,
                                    instance.schedules[0].microbatches,
                                    1,
                                    {},
                                    {}});
    for (const std::string_view name : search_steps()) {
      SearchOptions options{.iterations = 10};
      options.left_out = {std::string(name)};
      bool done = false;
      options.after_step = [&](const SearchStepDone& step) { done = done || step.name == name; };
      const Answer outcome = search(instance.problem(), options);
      EXPECT_EQ(done, name == "start") << "the first step is always done";
      for (const Priced& plan : outcome.plans) {
        ++plans;
        EXPECT_TRUE(fits(plan.peak_memory, instance.memory_limit));
        EXPECT_LE(outcome.bound->time, plan.estimate) << round << " without " << name;
        if (!plan.order) {
          EXPECT_GE(static_cast<double>(plan.estimate.count()), least);
        }
      }
      if (outcome.bound) {
        EXPECT_LE(static_cast<double>(outcome.bound->time.count()), least)
            << round << " without " << name;
      }
    }
  }
  EXPECT_GT(plans, 50);
}

}  // namespace
}  // namespace pfeife
