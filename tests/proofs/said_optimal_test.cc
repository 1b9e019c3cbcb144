// Tiny tables under tight memory: where the bound is reached and nothing is said to be left out, no
// order of the actions is faster, B merged or split as each rank likes. Up to four stages and three
// microbatches on two ranks nothing is left out.
#include <gtest/gtest.h>

#include "planner/cost/stages/stage_costs.h"
#include "planner/search/search.h"
#include "tests/proofs/one_by_one.h"
#include "tests/search/random_problem.h"
#include "tests/support/instances.h"

namespace pfeife {
namespace {

/// Two ranks, one or two stages each, all families, and limits that may bind.
struct TightTable {
  explicit TightTable(std::mt19937& random) {
    const std::size_t stages_per_rank = 1 + random() % 2, microbatches = 1 + random() % 3;
    RandomShape shape;
    shape.layers = 2 * stages_per_rank + random() % 3, shape.two_kinds = false;
    shape.skip_share = random() % 4 == 0 ? 0.3 : 0;
    shape.shared_parameters = shape.illegal_cuts = false;
    layers = random_layers(random, shape);
    cluster = random_cluster(random, 2, false);
    schedules = search_set(2, microbatches, std::vector<std::size_t>{stages_per_rank});
    built = {"zb_greedy", 2, microbatches, stages_per_rank, {}, {}};
    if (std::ranges::find(schedules, built) == schedules.end()) schedules.push_back(built);
    for (std::int64_t r = 0; r < 2; ++r)
      limit.emplace_back(static_cast<std::int64_t>((1500 + random() % 4000) * stages_per_rank));
  }
  Problem problem() const {
    return {.layers = layers,
            .cluster = cluster,
            .schedules = schedules,
            .device_of_rank = {DeviceId{0}, DeviceId{1}},
            .memory_limit = limit};
  }

  Layers layers;
  Cluster cluster;
  std::vector<ScheduleSpec> schedules;
  ScheduleSpec built;
  std::vector<Bytes> limit;
};

TEST(Optimal, IsSaidOfNoPlanThatAnOrderIsFasterThan) {
  const std::size_t all = instances(80);
  std::mt19937 random(17);
  std::size_t planned = 0, optimal = 0, left_out = 0, open = 0, given_up = 0;
  for (std::size_t round = 0; round < all; ++round) {
    const TightTable table(random);
    const Answer outcome = search(table.problem(), {.iterations = 20});
    if (outcome.plans.empty()) continue;
    const std::int64_t plan = outcome.plans[0].estimate.count();
    ++planned, left_out += outcome.orders_left_out;
    const bool reached = outcome.bound->time.count() >= plan;
    open += !reached;
    if (!reached || outcome.orders_left_out) continue;
    ++optimal;
    const Placement placement = placement_for(table.built);
    for_each_partition(table.layers, table.built.stages(), [&](const Partition& cuts) {
      const StageCosts costs = stage_costs(table.layers, cuts, placement, table.cluster);
      OneByOne one_by_one(costs, placement, table.built.microbatches, table.limit);
      ASSERT_EQ(one_by_one.best_below(plan), OneByOne::kNone)
          << round << ", not " << plan << ": " << to_string(outcome.covered);
      given_up += one_by_one.gave_up();
    });
    if (HasFatalFailure()) return;
  }
  std::printf(
      "%zu plans, %zu said to be optimal, of %zu orders are left out, of %zu the bound is not "
      "reached; %zu cuts not tried to the end\n",
      planned, optimal, left_out, open, given_up);
  EXPECT_GT(planned, all / 4);
  EXPECT_GT(optimal * 10, 9 * planned);
}

}  // namespace
}  // namespace pfeife
