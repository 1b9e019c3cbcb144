// Orders built for given costs over slices of the sequence: against all orders of tiny cases, a
// closed form that none goes below, the families that are written down for slices, and the judge.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <random>

#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/slice_costs.h"
#include "planner/schedules/order_clock.h"
#include "planner/schedules/zb_greedy.h"
#include "tests/schedules/timed.h"

namespace pfeife {
namespace {

/// Stages of random times and bytes, their microbatches cut into slices of equal length or time.
StageCosts random_slices(std::mt19937& random, std::size_t stages, std::size_t slices,
                         unsigned transfer) {
  const auto up_to = [&](unsigned most) { return static_cast<std::int64_t>(random() % most); };
  StageCosts costs = uniform_costs(stages, Nanoseconds{0}, Nanoseconds{0}, Nanoseconds{0},
                                   Nanoseconds{up_to(transfer + 1)});
  std::vector<double> linear;
  for (StageCost& stage : costs.stages) {
    stage.forward = Nanoseconds{60 + up_to(200)};
    stage.backward_input = Nanoseconds{60 + up_to(250)};
    stage.backward_weight = Nanoseconds{60 + up_to(150)};
    stage.optimizer = Nanoseconds{up_to(60)};
    stage.saved = Bytes{20 + up_to(80)};
    stage.weight_saved = Bytes{up_to(20)};
    linear.push_back(static_cast<double>(up_to(101)) / 100);
  }
  const auto lengths = random() % 2 ? SliceLengths::Equal : SliceLengths::EqualTime;
  costs = with_slices(std::move(costs), slice_ends(slices, lengths, 0.5), linear);
  for (StageCosts::Slice& slice : costs.slices)
    for (Bytes& bytes : slice.key_gradients) bytes = Bytes{up_to(8)};
  return costs;
}

/// [rank] The most that F and I leave behind: what a slice saves, from I on what its W needs, and
/// from the I of a microbatch's last slice on the gradients of the keys and values of the others,
/// each until its own I.
std::vector<Bytes> most_left(const Schedule& schedule, const StageCosts& costs) {
  std::vector<Bytes> highest;
  for (const auto& row : schedule.rows) {
    Bytes now{0}, most{0};
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        const MicrobatchId id = *action.microbatch;
        const auto s = action.stage.index(), k = static_cast<std::size_t>(id.slice());
        const StageCost& cost = costs.slices[k].stages[s];
        if (action.op == Op::Forward) now += cost.saved;
        if (action.op == Op::BackwardWeight) now -= cost.weight_saved;
        if (action.op == Op::BackwardInput) {
          now += cost.weight_saved - cost.saved;
          if (k + 1 < costs.slices.size())
            now -= costs.slices[k].key_gradients[s];
          else
            for (std::size_t j = 0; j < k; ++j) now += costs.slices[j].key_gradients[s];
        }
        most = std::max(most, now);
      });
    highest.push_back(most);
  }
  return highest;
}

/// [rank] Enough for one microbatch of all the rank's stages and a little more.
std::vector<Bytes> room_for_one(std::mt19937& random, const StageCosts& costs,
                                const Placement& placement) {
  std::vector<Bytes> room(placement.ranks(), Bytes{0});
  for (std::size_t s = 0; s < costs.stages.size(); ++s)
    for (const StageCosts::Slice& slice : costs.slices)
      room[placement.rank_of_stage[s].index()] +=
          slice.stages[s].saved + slice.stages[s].weight_saved + slice.key_gradients[s];
  for (Bytes& bytes : room) bytes += Bytes{static_cast<std::int64_t>(random() % 60)};
  return room;
}

Nanoseconds estimated(const Schedule& schedule, const StageCosts& costs,
                      const Placement& placement) {
  const Schedule lowered = lower(schedule, costs, placement);
  const auto answer = estimate(dependencies(lowered, stage_graph(costs), placement, {}), costs);
  EXPECT_TRUE(std::holds_alternative<Trace>(answer));
  return std::holds_alternative<Trace>(answer) ? step_time(std::get<Trace>(answer)) : Nanoseconds{};
}

/// Every order of the F, I and W of a stage's microbatches in slices: counts in order, the first I
/// of a microbatch behind all its F.
std::vector<std::vector<Turn>> all_rows(std::uint32_t stage, std::size_t microbatches,
                                        std::size_t slices) {
  std::vector<std::vector<Turn>> rows;
  std::vector<Turn> row;
  std::array<std::size_t, kParts> done{};
  const std::function<void()> extend = [&] {
    if (row.size() == kParts * microbatches * slices) rows.push_back(row);
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t count = done[part];
      if (count == microbatches * slices) continue;
      if (part == 1 && done[0] < (count / slices + 1) * slices) continue;
      if (part == 2 && done[1] <= count) continue;
      ++done[part];
      row.push_back({static_cast<Part>(part), stage});
      extend();
      row.pop_back();
      --done[part];
    }
  };
  extend();
  return rows;
}

// No order takes less, for every rank: the first slice comes to it, then it has all F and I, and
// the last I goes back through the ranks before it; or it has all its work and its optimizer step.
std::int64_t closed_form(const StageCosts& costs, std::size_t microbatches) {
  const auto n = static_cast<std::int64_t>(microbatches);
  const std::vector<StageCost>& first = costs.slices.front().stages;
  std::int64_t there = 0, back = 0, least = 0;
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    const StageCost& stage = costs.stages[s];
    const std::int64_t paced = n * (stage.forward + stage.backward_input).count();
    const std::int64_t all = paced + (n * stage.backward_weight + stage.optimizer).count();
    least = std::max(least, there + std::max(paced + back, all));
    there += first[s].forward.count(), back += first[s].backward_input.count();
  }
  return least;
}

TEST(SlicedOrders, OfTwoRanksAreAsFastAsTheBestOfAllOrdersAndNoneIsBelowTheClosedForm) {
  std::mt19937 random(23);
  std::size_t tried = 0, found = 0;
  for (int round = 0; round < 24; ++round) {
    const std::size_t n = 1 + random() % 2, slices = n == 1 ? 2 + random() % 2 : 2;
    const StageCosts costs = random_slices(random, 2, slices, 30);
    const Placement placement = round_robin(2, 2);
    const std::vector<Bytes> room =
        round % 3 == 0 ? std::vector<Bytes>{} : room_for_one(random, costs, placement);
    const OrderModel model(costs, placement, n, room);
    OrderClock clock(model);
    std::vector<std::vector<Turn>> first = all_rows(0, n, slices), second = all_rows(1, n, slices);
    std::erase_if(first, [&](const auto& row) { return !fits(model, {row}, 0); });
    std::erase_if(second, [&](const auto& row) { return !fits(model, {{}, row}, 1); });
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    Order fastest;
    for (const auto& row : first)
      for (const auto& other : second)
        if (const auto time = clock.run({row, other}); time && *time < best)
          best = *time, fastest = {row, other};
    EXPECT_EQ(estimated(schedule_of(fastest, slices), costs, placement), Nanoseconds{best});
    EXPECT_GE(best, closed_form(costs, n)) << round;
    const TimedOrder built = zero_bubble_order(costs, placement, n, room, {.moves = 500});
    EXPECT_GE(built.time, best);
    ++tried, found += built.time == best;
  }
  EXPECT_EQ(found, tried);
}

TEST(SlicedOrders, AreTimedAsByTheEstimatorKeepTheirRoomAndAreAcceptedByTheJudge) {
  std::mt19937 random(29);
  for (int round = 0; round < 80; ++round) {
    const std::size_t d = 1 + random() % 4, v = 1 + random() % 2, n = 1 + random() % 4;
    const std::size_t slices = 2 + random() % 3;
    const StageCosts costs = random_slices(random, d * v, slices, 40);
    const Placement placement = v == 2 && random() % 2 ? v_shape(d) : round_robin(d * v, d);
    const std::vector<Bytes> room = room_for_one(random, costs, placement);
    const TimedOrder built = zero_bubble_order(costs, placement, n, room, {.moves = 100});
    const Schedule schedule = schedule_of(built.order, slices);
    const auto wrong = validate(schedule, {stage_graph(costs), n * slices, false, slices});
    ASSERT_TRUE(wrong.empty()) << wrong.front().message;
    EXPECT_EQ(order_of(schedule), built.order);
    if (v == 1)
      EXPECT_EQ(estimated(schedule, costs, placement), Nanoseconds{built.time});
    else  // the estimator may step the optimizer of a stage while its rank waits for another
      EXPECT_LE(estimated(schedule, costs, placement), Nanoseconds{built.time});
    const std::vector<Bytes> most = most_left(schedule, costs);
    const OrderModel model(costs, placement, n, room);
    for (std::size_t r = 0; r < d; ++r) {
      EXPECT_LE(most[r], room[r]) << d << ' ' << v << ' ' << n << ' ' << slices;
      EXPECT_EQ(most[r].value, most_held(model, built.order, r));
    }
  }
}

TEST(SlicedOrders, ByOneRuleKeepTheirRoomThatHoldsOneMicrobatch) {
  std::mt19937 random(31);
  for (int round = 0; round < 200; ++round) {
    const std::size_t d = 1 + random() % 4, v = 1 + random() % 2, n = 1 + random() % 5;
    const StageCosts costs = random_slices(random, d * v, 2 + random() % 3, 40);
    const Placement placement = v == 2 && random() % 2 ? v_shape(d) : round_robin(d * v, d);
    const std::vector<Bytes> room = room_for_one(random, costs, placement);
    const OrderModel model(costs, placement, n, room);
    const auto order = order_by_rule(model, random() % order_rules(v, 1),
                                     std::numeric_limits<std::int64_t>::max());
    ASSERT_TRUE(order && OrderClock(model).run(*order));
    for (std::size_t r = 0; r < d; ++r) EXPECT_LE(most_held(model, *order, r), room[r].value);
  }
}

TEST(SlicedOrders, AreNoSlowerThanTheFamiliesWrittenDownForSlicesWithinTheirMemory) {
  std::mt19937 random(37);
  for (const char* name : {"seq1f1b", "slimpipe"})
    for (int round = 0; round < 8; ++round) {
      const std::size_t d = 2 + random() % 3, slices = d + random() % 2;
      const std::size_t v = name[1] == 'l' ? 1 + random() % 2 : 1;
      const ScheduleSpec spec{
          .family = name, .ranks = d, .microbatches = d, .stages_per_rank = v, .slices = slices};
      const StageCosts costs = random_slices(random, d * v, slices, 40);
      const Placement placement = placement_for(spec);
      const Order order = *order_of(generate(spec));
      std::vector<Bytes> room = most_left(schedule_of(order, slices), costs);
      const TimedOrder built = zero_bubble_order(costs, placement, d, room, {.moves = 0});
      EXPECT_LE(Nanoseconds{built.time}, step_time(timed(spec, costs))) << name << round;
      const std::vector<Bytes> most = most_left(schedule_of(built.order, slices), costs);
      for (std::size_t r = 0; r < d; ++r) EXPECT_LE(most[r], room[r]) << name << round;
    }
}

// The last rank begins after (D - 1) (F / S + c) and never idles again.
TEST(SlicedOrders, OfEqualSlicesReachTheLeastThatTheLastRankAllows) {
  const double linear[] = {1};
  const std::size_t slices = 4;
  const StageCosts costs = with_slices(
      uniform_costs(4, Nanoseconds{400}, Nanoseconds{400}, Nanoseconds{400}, Nanoseconds{5}),
      slice_ends(slices, SliceLengths::Equal, 1), linear);
  EXPECT_EQ(zero_bubble_order(costs, round_robin(4, 4), 8, {}).time, 3 * 105 + 8 * 1200);
}

TEST(SlicedOrders, AFamilyBuiltForCostsIsTriedWholeAndInSlices) {
  std::vector<std::size_t> found;
  const std::vector<std::string> names{"zb_greedy"};
  for (const ScheduleSpec& spec :
       search_set(2, 2, std::vector<std::size_t>{1}, names, std::vector<std::size_t>{1, 2, 4}))
    found.push_back(spec.slices);
  EXPECT_EQ(found, (std::vector<std::size_t>{1, 2, 4}));
}

}  // namespace
}  // namespace pfeife
