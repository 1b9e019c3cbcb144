// More effort is never worse: the search does the same work in the same order, and effort only says
// where it stops.
#include <gtest/gtest.h>

#include <array>
#include <span>

#include "planner/schedules/families.h"
#include "planner/search/search.h"
#include "tests/search/random_problem.h"
#include "tests/support/instances.h"

namespace pfeife {
namespace {

constexpr std::array<std::size_t, 9> kEfforts{1, 3, 6, 10, 14, 20, 27, 40, 62};

struct EffortInstance {
  Layers layers;
  Cluster cluster;
  Problem problem(std::vector<ScheduleSpec> schedules, std::size_t ranks, Bytes limit) const {
    Problem p{.layers = layers, .cluster = cluster, .schedules = std::move(schedules)};
    for (std::size_t r = 0; r < ranks; ++r)
      p.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    p.memory_limit.assign(ranks, limit);
    return p;
  }
};

/// What each effort comes to.
std::vector<Answer> outcomes(const Problem& problem, std::uint64_t seed) {
  std::vector<Answer> found;
  for (const std::size_t effort : kEfforts)
    found.push_back(search(problem, {.seed = seed, .iterations = effort}));
  return found;
}

/// Steps of the search without their bounds, which the outcome lowers to what the plan's class has.
std::vector<std::pair<std::size_t, std::optional<Nanoseconds>>> steps(const Answer& outcome) {
  std::vector<std::pair<std::size_t, std::optional<Nanoseconds>>> found;
  for (const SearchStep& step : outcome.history)
    if (found.empty() || found.back() != std::pair{step.candidates, step.best})
      found.emplace_back(step.candidates, step.best);
  return found;
}

TEST(Effort, MoreIsNeverWorseAndBeginsWithWhatLessDoes) {
  std::mt19937 random(71);
  int better = 0, late = 0, built = 0, longer = 0;
  const std::size_t rounds = instances(6);
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t ranks = 3 + random() % 2, microbatches = 4 + random() % 3;
    RandomShape shape;
    shape.layers = 40;
    shape.skip_share = 0.1;
    const EffortInstance instance{random_layers(random, shape),
                                  random_cluster(random, ranks, true)};
    std::vector<ScheduleSpec> schedules{{"zb1p", ranks, microbatches, 2, {}, {}}};
    for (int k = 0; k < 3; ++k)
      schedules.push_back(random_spec(random, ranks, microbatches, {1, 2, 3}));
    if (round % 2 == 0) {
      schedules.push_back({"zb_greedy", ranks, microbatches, 2, {}, {}});
      schedules.push_back({"zbv_greedy", ranks, microbatches, 2, {}, {}});
    }
    Problem problem = instance.problem(schedules, ranks, Bytes{1 << 30});
    if (round % 3 > 0) {
      const Answer free = search(problem, {.iterations = 1});
      for (Bytes& limit : problem.memory_limit)
        limit = Bytes{std::ranges::max(free.plans[0].peak_memory).value * 8 / 10};
    }
    problem.recompute =
        std::array{Recompute::None, Recompute::Choose, Recompute::None, Recompute::Full}[round % 4];
    const std::vector<Answer> found = outcomes(problem, random());
    for (std::size_t k = 1; k < found.size(); ++k) {
      const Answer &less = found[k - 1], &more = found[k];
      const auto first = steps(less), all = steps(more);
      ASSERT_LE(first.size(), all.size()) << round << ", effort " << kEfforts[k];
      EXPECT_TRUE(std::ranges::equal(first, std::span(all).first(first.size())))
          << round << ", effort " << kEfforts[k];
      longer += first.size() < all.size();
      if (less.plans.empty()) continue;
      ASSERT_FALSE(more.plans.empty()) << round << ", effort " << kEfforts[k];
      EXPECT_LE(more.plans[0].estimate, less.plans[0].estimate)
          << round << ", effort " << kEfforts[k];
      better += more.plans[0].estimate < less.plans[0].estimate;
      late += kEfforts[k] > 10 && more.plans[0].estimate < less.plans[0].estimate;
      built += more.plans[0].order.has_value();
    }
  }
  EXPECT_GT(better, 1);
  EXPECT_GT(late, 0);
  EXPECT_GT(built, 10);
  EXPECT_GT(longer, 20);
}

/// All families, one and two stages a rank.
std::vector<ScheduleSpec> all_schedules(std::size_t ranks, std::size_t microbatches) {
  std::vector<std::string> names;
  for (const Family& family : families()) names.push_back(family.name);
  return search_set(ranks, microbatches, std::array<std::size_t, 2>{1, 2}, names);
}

/// Effort buys nothing once nothing can be found: no candidate more is looked at.
void expect_no_work_for(const Problem& problem, const Answer& little) {
  const Answer much = search(problem, {.iterations = 2000});
  EXPECT_EQ(much.candidates, little.candidates);
  EXPECT_EQ(much.plans, little.plans);
  EXPECT_EQ(much.bound, little.bound);
}

/// On one device that all fits, the sum of all times is the least step, whatever the order.
TEST(Effort, EndsWhenThePlanIsProvenTheBestOfAnyOrder) {
  std::mt19937 random(5);
  const EffortInstance instance{random_layers(random, {.layers = 12}),
                                random_cluster(random, 1, true)};
  const Problem problem = instance.problem(all_schedules(1, 3), 1, Bytes{1 << 30});
  const Answer little = search(problem, {.iterations = 10});
  ASSERT_FALSE(little.plans.empty());
  ASSERT_EQ(little.bound->time, little.plans[0].estimate);
  expect_no_work_for(problem, little);
}

/// A limit that not even the parameters of one layer meet.
TEST(Effort, EndsWhenNothingIsProvenToFit) {
  std::mt19937 random(6);
  const EffortInstance instance{random_layers(random, {.layers = 12}),
                                random_cluster(random, 2, true)};
  const Problem problem = instance.problem(all_schedules(2, 4), 2, Bytes{1});
  const Answer little = search(problem, {.iterations = 10});
  ASSERT_TRUE(little.infeasible && little.infeasible->proven);
  expect_no_work_for(problem, little);
}

// What is found for an order that is built for the costs does not depend on what it is offered
// with.
TEST(Effort, MoreSchedulesToChooseFromAreNeverWorseThanABuiltOneAlone) {
  std::mt19937 random(72);
  int fits = 0, listed_helps = 0;
  const std::size_t rounds = instances(9);
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t ranks = 3 + random() % 2, microbatches = 4 + random() % 3;
    RandomShape shape;
    shape.layers = 40;
    shape.skip_share = 0.1;
    const EffortInstance instance{random_layers(random, shape),
                                  random_cluster(random, ranks, true)};
    const std::vector<ScheduleSpec> built{{"zb_greedy", ranks, microbatches, 1, {}, {}},
                                          {"zb_greedy", ranks, microbatches, 2, {}, {}},
                                          {"zbv_greedy", ranks, microbatches, 2, {}, {}}};
    std::vector<ScheduleSpec> all = built;
    all.push_back({"zb1p", ranks, microbatches, 2, {}, {}});
    for (int k = 0; k < 3; ++k) all.push_back(random_spec(random, ranks, microbatches, {1, 2}));
    Problem problem = instance.problem(all, ranks, Bytes{1 << 30});
    const Answer free = search(problem, {.iterations = 1});
    if (round % 3 > 0)
      for (Bytes& limit : problem.memory_limit)
        limit = Bytes{std::ranges::max(free.plans[0].peak_memory).value * 8 / 10};
    const SearchOptions options{.seed = random(), .iterations = 20};
    const Answer together = search(problem, options);
    for (const ScheduleSpec& spec : built) {
      problem.schedules = {spec};
      const Answer alone = search(problem, options);
      if (alone.plans.empty()) continue;
      ++fits;
      ASSERT_FALSE(together.plans.empty()) << round;
      EXPECT_LE(together.plans[0].estimate, alone.plans[0].estimate) << round << " " << spec.family;
      listed_helps += together.plans[0].estimate < alone.plans[0].estimate;
    }
  }
  EXPECT_GT(fits, 10);
  EXPECT_GT(listed_helps, 1);
}

// Tables of a few layers, where the effort is enough for every family by itself.
TEST(Effort, AllFamiliesTogetherAreNeverWorseThanOneOfThem) {
  std::mt19937 random(91);
  int fits = 0, together_helps = 0;
  for (int round = 0; round < 12; ++round) {
    const std::size_t ranks = 2 + random() % 2, microbatches = 4 + 2 * (random() % 2);
    RandomShape shape;
    shape.layers = 7 + random() % 6;
    shape.skip_share = 0.1;
    const EffortInstance instance{random_layers(random, shape),
                                  random_cluster(random, ranks, true)};
    const std::vector<std::size_t> stages_per_rank{1, 2};
    std::vector<std::string> names;
    for (const Family& family : families()) names.push_back(family.name);
    Problem problem = instance.problem(search_set(ranks, microbatches, stages_per_rank, names),
                                       ranks, Bytes{1 << 30});
    if (round % 2 == 1) {
      const Answer free = search(problem, {.iterations = 1});
      for (Bytes& limit : problem.memory_limit)
        limit = Bytes{std::ranges::max(free.plans[0].peak_memory).value * 8 / 10};
    }
    const SearchOptions options{.seed = random(), .iterations = 20};
    const Answer together = search(problem, options);
    for (const std::string& name : names) {
      problem.schedules =
          search_set(ranks, microbatches, stages_per_rank, std::vector<std::string>{name});
      if (problem.schedules.empty()) continue;
      const Answer alone = search(problem, options);
      if (alone.plans.empty()) continue;
      ++fits;
      ASSERT_FALSE(together.plans.empty()) << round << " " << name;
      EXPECT_LE(together.plans[0].estimate, alone.plans[0].estimate) << round << " " << name;
      together_helps += together.plans[0].estimate < alone.plans[0].estimate;
    }
  }
  EXPECT_GT(fits, 60);
  EXPECT_GT(together_helps, 30);
}

}  // namespace
}  // namespace pfeife
