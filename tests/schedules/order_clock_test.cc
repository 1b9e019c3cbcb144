// How long orders take: an order that is run again from where it was changed, and one that is given
// up, against the same order run whole.
#include "planner/schedules/order_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/ir/schedule/stage_costs.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

/// Times may be nothing, so that several actions begin at once.
StageCosts random_costs(std::mt19937& random, std::size_t stages) {
  StageCosts costs =
      uniform_costs(stages, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1});
  const auto time = [&] { return Nanoseconds{static_cast<std::int64_t>(random() % 6)}; };
  for (StageCost& stage : costs.stages) {
    stage.forward = time(), stage.backward_input = time(), stage.backward_weight = time();
    stage.optimizer = time();
  }
  for (StagePair& pair : costs.pairs) pair.forward_time = time(), pair.backward_time = time();
  return costs;
}

TEST(OrderClock, RunFromAChangeAndWithALimitSaysWhatAWholeRunSays) {
  std::mt19937 random(4);
  std::size_t ended = 0, deadlocked = 0, too_long = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t d = 1 + random() % 4, v = 1 + random() % 2, n = 1 + random() % 6;
    const ScheduleSpec spec{v == 1 ? "zb_h1" : "zbv", d, 2 * d + n, v, {}, {}};
    const OrderModel model(random_costs(random, spec.stages()), placement_for(spec),
                           spec.microbatches, {});
    Order order = *order_of(generate(spec));
    OrderClock now(model);
    ASSERT_TRUE(now.run(order));
    for (int change = 0; change < 20; ++change) {
      const std::size_t rank = random() % d;
      Order other = order;
      auto& row = other[rank];
      const std::size_t first = random() % row.size(), last = std::min(first + 4, row.size());
      std::shuffle(row.begin() + static_cast<std::ptrdiff_t>(first),
                   row.begin() + static_cast<std::ptrdiff_t>(last), random);
      OrderClock whole(model), part(model);
      const auto time = whole.run(other);
      ASSERT_EQ(part.run_from(now, other, rank, first), time);
      if (!time) {
        ++deadlocked;
        continue;
      }
      const std::int64_t most = *time - 2 + static_cast<std::int64_t>(random() % 4);
      const auto within = *time <= most ? time : std::nullopt;
      EXPECT_EQ(OrderClock(model).run(other, most), within);
      EXPECT_EQ(OrderClock(model).run_from(now, other, rank, first, most), within);
      ++(within ? ended : too_long);
      const auto path = whole.critical_path(other), same = part.critical_path(other);
      ASSERT_TRUE(std::ranges::equal(path, same, [](const auto& a, const auto& b) {
        return a.rank == b.rank && a.position == b.position;
      }));
      order = other, now.run(order);  // a clock of one model runs one order after another
    }
  }
  EXPECT_GT(ended, 500);
  EXPECT_GT(too_long, 500);
  EXPECT_GT(deadlocked, 500);
}

}  // namespace
}  // namespace pfeife
