// The front against its definition, pair by pair.
#include "planner/search/price/pareto.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/cost/estimate/evaluate.h"
#include "tests/search/as_told.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

const std::vector<Bytes> kLimits{Bytes{8}, Bytes{4}};

/// Eighths of its limit that the fullest rank has.
std::int64_t eighths(const Priced& plan) {
  return std::max(plan.peak_memory[0].value, 2 * plan.peak_memory[1].value);
}

bool beats(const Priced& a, const Priced& b) {
  return a.estimate <= b.estimate && eighths(a) <= eighths(b) &&
         (a.estimate < b.estimate || eighths(a) < eighths(b));
}

TEST(ParetoFront, HoldsExactlyWhatNothingBeats) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Priced> plans(random() % 12);
    for (Priced& plan : plans) {
      plan.estimate = Nanoseconds{random() % 8};
      plan.peak_memory = {Bytes{static_cast<std::int64_t>(random() % 8)},
                          Bytes{static_cast<std::int64_t>(random() % 4)}};
    }
    const std::vector<Priced> front = pareto_front(plans, kLimits);
    for (const Priced& plan : plans) {
      const bool beaten =
          std::ranges::any_of(plans, [&](const Priced& other) { return beats(other, plan); });
      const auto times = std::ranges::count_if(front, [&](const Priced& p) {
        return p.estimate == plan.estimate && eighths(p) == eighths(plan);
      });
      EXPECT_EQ(times, beaten ? 0 : 1) << round;
    }
  }
}

/// Points on the fronts of twenty searches, each of which begins with the plan and is what it says.
std::size_t points_of_searches(const std::vector<ScheduleSpec>& schedules) {
  std::mt19937 random(2);
  std::size_t points = 0;
  for (int round = 0; round < 20; ++round) {
    const Layers layers = random_layers(random, {.layers = 9, .two_kinds = false});
    const Cluster cluster = random_cluster(random, 2, false);
    const Problem problem{layers,
                          cluster,
                          schedules,
                          {DeviceId{0}, DeviceId{1}},
                          {Bytes{1 << 30}, Bytes{1 << 30}},
                          std::nullopt};
    const Answer outcome = search(problem, {.keep = 1, .iterations = 20});
    if (outcome.front.empty()) {
      ADD_FAILURE() << "no front " << round;
      continue;
    }
    EXPECT_EQ(outcome.front.front().estimate, outcome.plans.front().estimate);
    points += outcome.front.size();
    for (const Priced& plan : outcome.front) expect_as_told(problem, plan);
  }
  return points;
}

TEST(ParetoFront, OfASearchBeginsWithItsPlanAndEveryPointIsWhatItSays) {
  EXPECT_GT(points_of_searches(search_set(2, 4, std::vector<std::size_t>{1, 2})), 30U)
      << "fronts of one point each show nothing";
}

// One schedule may be there more than once: with other cuts and another order.
TEST(ParetoFront, HasAllThatWasSeenOfOrdersThatAreBuilt) {
  EXPECT_GT(points_of_searches({{"zb_greedy", 2, 4, 2, {}, {}}}), 25U);
}

}  // namespace
}  // namespace pfeife
