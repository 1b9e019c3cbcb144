// Problems that do the same work in other ways: the best of them, and what is proven of all.
#include "planner/search/choices/alternatives.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/search/device_instance.h"

namespace pfeife {
namespace {

SearchOptions small() { return {.iterations = 30}; }

TEST(Alternatives, GiveTheBestOfAllProblemsAndABoundOfAll) {
  std::mt19937 random(17);
  for (int round = 0; round < 40; ++round) {
    const DeviceInstance a = random_device_instance(random, 2),
                         b = random_device_instance(random, 2),
                         c = random_device_instance(random, 2);
    const std::vector<Problem> problems{a.problem(), b.problem(), c.problem()};
    std::optional<Nanoseconds> best;
    for (const Problem& problem : problems)
      if (const Answer outcome = search(problem, small()); !outcome.plans.empty())
        best = std::min(best.value_or(Nanoseconds::max()), outcome.plans[0].estimate);
    const BestAlternative found = search_alternatives(problems, small(), search);
    ASSERT_EQ(found.outcome.plans.empty(), !best.has_value()) << round;
    if (!best) continue;
    EXPECT_EQ(found.outcome.plans[0].estimate, *best) << round;
    EXPECT_LE(found.outcome.bound->time, *best) << round;
    EXPECT_EQ(why_not(found, found.best).why, Why::Chosen);
    for (std::size_t i = 0; i < problems.size(); ++i) {
      EXPECT_LE(found.outcome.bound->time, found.all[i].bound()) << round;
      EXPECT_EQ(why_not(found, i).why == Why::Chosen, i == found.best) << round;
    }
  }
}

// A search may take another choice of recomputed stages than the one before: what it proves without
// is nothing that holds for plans with.
TEST(Alternatives, MixNoBoundsOfPlansThatMayRecomputeOtherStages) {
  std::mt19937 random(29);
  int changed = 0;
  for (int round = 0; round < 60; ++round) {
    DeviceInstance a = random_device_instance(random, 2);
    for (Layer& layer : a.layers.layers) layer.saved.value *= 3;
    const DeviceInstance b = a;
    std::map<const Problem*, int> searches;
    SearchOptions options = small();
    options.certificate = true;
    const std::vector<Problem> problems{a.problem(), b.problem()};
    const BestAlternative found = search_alternatives(
        problems, options, [&](const Problem& problem, const SearchOptions& of_search) {
          Problem recomputing = problem;
          if (++searches[&problem] == 2) recomputing.recompute = Recompute::Choose;
          return search(recomputing, of_search);
        });
    if (found.outcome.plans.empty()) continue;
    EXPECT_EQ(found.outcome.recompute, found.all[found.best].recompute);
    for (std::size_t i = 0; i < 2; ++i) {
      const AlternativeOutcome& one = found.all[i];
      if (!one.searched || !one.plan) continue;
      Problem allowed = problems[i];
      allowed.recompute = one.recompute;
      const Answer best = search(allowed, small());
      ASSERT_FALSE(best.plans.empty());
      EXPECT_LE(one.bound(), best.plans[0].estimate) << round;
      changed += one.recompute == Recompute::Choose;
    }
  }
  EXPECT_GT(changed, 20);
}

// A bound of the listed schedules does not rule out orders that are built for the costs: the second
// problem's is above the first one's plan, and yet a longer search finds the best plan there.
TEST(Alternatives, AreNotRuledOutByBoundsThatKnowNoBuiltOrders) {
  std::mt19937 random(3);
  const DeviceInstance instance = random_device_instance(random, 2);
  const auto best_of = [&](const char* family) {
    Problem first = instance.problem(), second = instance.problem();
    second.schedules.push_back({family, first.schedules[0].ranks, 4, 1, {}, {}});
    const auto searcher = [&](const Problem& problem, const SearchOptions& options) {
      Answer outcome;
      Priced plan{{.spec = problem.schedules[0]}};
      const bool one = problem.schedules.size() == first.schedules.size();
      const bool brief = options.iterations == small().iterations;
      plan.estimate = Nanoseconds{one ? 1000'000'000 : brief ? 1200'000'000 : 900'000'000};
      outcome.bound = Bound{Nanoseconds{one ? 950'000'000 : 1100'000'000}};
      outcome.plans = {plan};
      return outcome;
    };
    SearchOptions options = small();
    options.iterations *= 100;
    return search_alternatives({first, second}, options, searcher).best;
  };
  EXPECT_EQ(best_of("zb_greedy"), 1U);
  EXPECT_EQ(best_of("zb_h1"), 0U);
}

TEST(Alternatives, KeepTheBetterOfTwoSearchesOfAProblem) {
  // The second search of each problem, with all of the effort, ends at a slower plan than the
  // first.
  std::mt19937 random(19);
  int kept = 0;
  for (int round = 0; round < 20; ++round) {
    const DeviceInstance a = random_device_instance(random, 2),
                         b = random_device_instance(random, 2);
    const std::vector<Problem> problems{a.problem(), b.problem()};
    std::map<const Problem*, int> searches;
    std::map<const Problem*, Nanoseconds> first;
    const BestAlternative found = search_alternatives(
        problems, {.certificate = true}, [&](const Problem& problem, const SearchOptions& options) {
          Answer outcome = search(problem, options);
          if (outcome.plans.empty()) return outcome;
          if (++searches[&problem] == 1)
            first[&problem] = outcome.plans[0].estimate;
          else
            for (Priced& plan : outcome.plans) plan.estimate += Nanoseconds{5};
          return outcome;
        });
    if (found.outcome.plans.empty()) continue;
    const Problem* const best = &problems[found.best];
    EXPECT_EQ(found.outcome.plans[0].estimate, first.at(best)) << round;
    EXPECT_EQ(found.all[found.best].plan->estimate, first.at(best)) << round;
    if (searches.at(best) < 2) continue;
    ++kept;
    // The certificate is of the problem whose plan it is.
    ASSERT_TRUE(found.outcome.certificate) << round;
    EXPECT_EQ(found.outcome.certificate->recompute, found.outcome.recompute);
    EXPECT_LE(found.outcome.certificate->bound, first.at(best).count()) << round;
  }
  EXPECT_GT(kept, 10);
}

}  // namespace
}  // namespace pfeife
