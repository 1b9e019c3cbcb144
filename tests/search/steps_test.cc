// The runner of a step checks its step's work: the best plan and what is claimed.
#include <gtest/gtest.h>

#include "planner/search/steps/step.h"
#include "tests/search/random_instance.h"

namespace pfeife {
namespace {

TEST(Steps, ABoundAboveAListedPlanIsADefect) {
  std::mt19937 random(3);
  Layers layers = random_layers(random, {.layers = 6});
  const Cluster cluster = random_cluster(random, 2, false);
  Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
  problem.device_of_rank = {DeviceId{0}, DeviceId{1}};
  problem.memory_limit.assign(2, Bytes{1 << 30});
  problem.schedules = {{.family = "1f1b", .ranks = 2, .microbatches = 4}};
  const SearchOptions options{.iterations = 20};
  const Answer answer = search(problem, options);
  ASSERT_TRUE(answer.bound && !answer.plans.empty());
  const auto with_bound = [&](Nanoseconds time) {
    Pool pool(answer, problem.memory_limit);
    pool.rebound(time);
    take_step("given plans", problem, options, pool, [&] { pool.add(answer.plans); });
  };
  EXPECT_NO_THROW(with_bound(answer.plans.front().estimate));
  EXPECT_ANY_THROW(with_bound(answer.plans.front().estimate + Nanoseconds{1}));
}

}  // namespace
}  // namespace pfeife
