// Built orders that need less memory and are as fast.
#include "planner/search/choices/leaner_orders.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/search/as_told.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

TEST(LeanerOrders, AreWhatTheySayFitAndTakeNoLongerThanAllowed) {
  std::mt19937 random(3);
  std::size_t found = 0, exact = 0;
  for (int round = 0; round < 20; ++round) {
    const Layers layers = random_layers(random, {.layers = 9, .two_kinds = false});
    const Cluster cluster = random_cluster(random, 2, false);
    const Problem problem{layers,
                          cluster,
                          {{"zb_greedy", 2, 6, 2, {}, {}}, {"1f1b", 2, 6, 1, {}, {}}},
                          {DeviceId{0}, DeviceId{1}},
                          {Bytes{1 << 20}, Bytes{1 << 20}},
                          std::nullopt};
    const std::vector<Priced> plans = search(problem, {.keep = 1, .iterations = 10}).all;
    for (const double slower : {0.0, 0.05}) {
      for (const Priced& plan : leaner_orders(problem, plans, slower, 1)) {
        expect_as_told(problem, plan);
        EXPECT_LE(static_cast<double>(plan.estimate.count()),
                  (1 + slower) * static_cast<double>(plans.front().estimate.count()));
        const auto from = std::ranges::find_if(plans, [&](const Priced& other) {
          return other.spec == plan.spec && other.partition == plan.partition;
        });
        ASSERT_NE(from, plans.end());
        EXPECT_LT(fullness(plan.peak_memory, problem.memory_limit),
                  fullness(from->peak_memory, problem.memory_limit));
        ++found, exact += slower == 0;
      }
    }
  }
  EXPECT_GT(found, 10u) << "orders that need less should be common at 5 %";
  EXPECT_GT(exact, 0u);
}

// Nothing is built: there is nothing to build with less.
TEST(LeanerOrders, AreOfOrdersThatAreBuilt) {
  std::mt19937 random(4);
  const Layers layers = random_layers(random, {.layers = 9, .two_kinds = false});
  const Cluster cluster = random_cluster(random, 2, false);
  const Problem problem{layers,
                        cluster,
                        {{"1f1b", 2, 4, 1, {}, {}}},
                        {DeviceId{0}, DeviceId{1}},
                        {Bytes{1 << 20}, Bytes{1 << 20}},
                        std::nullopt};
  EXPECT_TRUE(leaner_orders(problem, search(problem, {.iterations = 5}).all, 1, 1).empty());
  EXPECT_TRUE(leaner_orders(problem, {}, 1, 1).empty());
}

}  // namespace
}  // namespace pfeife
