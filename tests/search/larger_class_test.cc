// More schedules to choose from never make the plan slower.
#include <gtest/gtest.h>

#include "planner/schedules/families.h"
#include "planner/search/search.h"
#include "tests/support/synthetic_models.h"

namespace pfeife {
namespace {

TEST(Search, PlansAreNotSlowerWhereMoreLoopsMayBeChosen) {
  constexpr std::size_t kRanks = 8, kMicrobatches = 16;
  const Layers layers = synthetic_vit();
  const Cluster cluster = synthetic_cluster(kRanks, 180, 6000);
  Problem problem{.layers = layers, .cluster = cluster};
  for (std::size_t r = 0; r < kRanks; ++r) {
    problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    problem.memory_limit.emplace_back(std::int64_t{1} << 45);
  }
  std::vector<std::string> names;
  for (const Family& family : families())
    if (family.certified) names.push_back(family.name);
  Nanoseconds best = Nanoseconds::max();
  std::vector<std::size_t> loops;
  for (const std::size_t v : {1U, 2U, 3U}) {
    loops.push_back(v);
    problem.schedules = search_set(kRanks, kMicrobatches, loops, names);
    const SearchOutcome outcome = search(problem, {.iterations = 100});
    ASSERT_FALSE(outcome.plans.empty());
    EXPECT_LE(outcome.plans[0].estimate, best) << v;
    best = outcome.plans[0].estimate;
  }
}

}  // namespace
}  // namespace pfeife
