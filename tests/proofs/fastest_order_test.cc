// The fastest of all orders of tiny tables, memory tight or not, against trying them one by one.
#include "planner/search/orders/fastest_order.h"

#include <gtest/gtest.h>

#include "planner/cost/stages/stage_costs.h"
#include "tests/proofs/one_by_one.h"
#include "tests/search/random_problem.h"
#include "tests/support/instances.h"

namespace pfeife {
namespace {

/// Costs of two ranks with one or two stages each, and limits that may bind.
struct Tiny {
  explicit Tiny(std::mt19937& random) {
    static constexpr std::size_t kSizes[][2] = {{2, 1}, {2, 2}, {2, 3}, {3, 2},
                                                {4, 1}, {4, 2}, {4, 3}, {6, 1}};
    stages = kSizes[random() % std::size(kSizes)][0];
    for (const auto& [s, n] : kSizes)
      if (s == stages && (microbatches == 0 || random() % 2 == 0)) microbatches = n;
    placement = stages == 4 && random() % 2 == 0 ? v_shape(2) : round_robin(stages, 2);
    RandomShape shape;
    shape.layers = stages + random() % 3, shape.two_kinds = false;
    shape.shared_parameters = shape.illegal_cuts = false;
    shape.skip_share = random() % 2 == 0 ? 0 : 0.3;
    const Layers layers = random_layers(random, shape);
    std::vector<Partition> cuts;
    for_each_partition(layers, stages, [&](const Partition& one) { cuts.push_back(one); });
    costs = stage_costs(layers, cuts[random() % cuts.size()], placement,
                        random_cluster(random, 2, false));
    if (random() % 3 == 0) costs.norm = Nanoseconds{random() % 200};
    for (int r = 0; r < 2; ++r)
      limit.emplace_back(static_cast<std::int64_t>((600 + random() % 2000) * stages));
  }
  OrderTrial fastest(Receives receives, std::int64_t enough) const {
    std::size_t budget = 150'000;
    return fastest_order(costs, placement, microbatches, limit, receives, enough, budget);
  }

  std::size_t stages = 0, microbatches = 0;
  Placement placement;
  StageCosts costs;
  std::vector<Bytes> limit;
};

TEST(FastestOrder, IsAsTimedFitsAndNoneIsFaster) {
  const std::size_t all = instances(50);
  std::mt19937 random(31);
  std::size_t compared = 0, none = 0, waiting = 0, spent = 0, given_up = 0;
  for (std::size_t round = 0; round < all; ++round) {
    const Tiny tiny(random);
    const OrderTrial at_need = tiny.fastest(Receives::AtNeed, OneByOne::kNone);
    const std::int64_t least = at_need.fastest ? at_need.time : OneByOne::kNone;
    // The faster ones are tried one by one; above them some more, where values that wait may
    // decide.
    const std::int64_t enough = at_need.fastest ? least + least / 10 : OneByOne::kNone;
    const OrderTrial exact = tiny.fastest(Receives::AsReady, enough);
    if (!at_need.tried_all || !exact.tried_all) {
      ++spent;
      continue;
    }
    const std::int64_t time = exact.fastest ? exact.time : enough;
    ASSERT_LE(least, time) << round;
    ++compared, none += !exact.fastest, waiting += exact.fastest && least < time;
    if (exact.fastest) {
      const Schedule lowered = lower(*exact.fastest, tiny.costs, tiny.placement);
      const Prices plan = evaluate_lowered(tiny.costs, lowered, tiny.placement);
      ASSERT_EQ(plan.estimate.count(), time) << round;
      for (std::size_t r = 0; r < 2; ++r) ASSERT_LE(plan.peak_memory[r], tiny.limit[r]) << round;
    }
    OneByOne one_by_one(tiny.costs, tiny.placement, tiny.microbatches, tiny.limit);
    ASSERT_EQ(one_by_one.best_below(time), OneByOne::kNone) << round << ": " << time;
    given_up += one_by_one.gave_up();
  }
  std::printf(
      "%zu compared, %zu of them not to the end; %zu have no order, %zu a slower one because of "
      "values that wait; %zu were too large\n",
      compared, given_up, none, waiting, spent);
  EXPECT_GT(compared * 10, 7 * all);
  EXPECT_LT(given_up * 4, compared);
  EXPECT_GT(waiting, 0U);
}

}  // namespace
}  // namespace pfeife
