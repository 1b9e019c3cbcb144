// V schedules under a cap of stages in flight, each from its F to the end of its W, beside the
// generators of "Pipeline Parallelism with Controllable Memory" (Qi, Wan et al., NeurIPS 2024).
//
// tests/data/oracles/controllable_memory.csv: what the authors' code makes (sail-sg/zero-bubble,
// commit 3fd87fd1): most stages in flight of a rank, and the makespan of the order by a plain event
// loop. v_min and v_half: scheduler/zbv_greedy.py; best: the fastest of
// scheduler/v_auto_schedule.py under that cap.
#include <gtest/gtest.h>

#include <random>

#include "planner/schedule_tool/verbs.h"
#include "planner/schedules/backfill.h"
#include "planner/schedules/building_block.h"
#include "planner/schedules/order_clock.h"
#include "planner/schedules/zb_greedy.h"
#include "tests/schedules/oracle_csv.h"
#include "tests/schedules/timed.h"

namespace pfeife {
namespace {

struct Published {
  explicit Published(const OracleRow& row) : row(row) {}
  const OracleRow& row;

  std::size_t number(const char* key) const { return std::stoul(row.at(key)); }
  ScheduleSpec point(const std::string& family) const {
    return {
        .family = family, .ranks = number("D"), .microbatches = number("N"), .stages_per_rank = 2};
  }
  tool::UnitCosts costs() const {
    const auto ms = [&](const char* key) { return static_cast<double>(number(key)); };
    return {.forward = {ms("F")},
            .backward_input = {ms("I")},
            .backward_weight = {ms("W")},
            .transfer = ms("transfer")};
  }
  std::string text() const {
    std::string text;
    for (const auto& [key, value] : row) text += key + " " + value + ", ";
    return text;
  }
};

/// ms of the schedule, lowered.
double makespan(const Schedule& schedule, const ScheduleSpec& spec, const tool::UnitCosts& unit) {
  const StageCosts costs = tool::stage_costs_of(unit, spec.stages());
  const Placement placement = placement_for(spec);
  const Schedule lowered = lower(schedule, costs, placement);
  const auto answer = estimate(dependencies(lowered, stage_graph(costs), placement, {}), costs);
  return milliseconds(step_time(std::get<Trace>(answer)));
}

/// Most stages whose F has begun and whose W has not ended, of any rank.
std::size_t most_in_flight(const Schedule& schedule) {
  std::size_t most = 0;
  for (const auto& row : schedule.rows) {
    std::size_t held = 0;
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        held += action.op == Op::Forward;
        most = std::max(most, held);
        held -= action.op == Op::BackwardWeight;
      });
  }
  return most;
}

TEST(ControllableMemory, FamiliesHoldNoMoreAndTakeNoLongerThanTheAuthorsOrders) {
  int rows = 0;
  for (const OracleRow& row : oracle_rows("oracles/controllable_memory.csv")) {
    const Published published(row);
    if (row.at("pattern") == "best" || row.at("F") != "1") continue;
    const ScheduleSpec spec = published.point(row.at("pattern"));
    const Schedule schedule = generate(spec);
    EXPECT_LE(most_in_flight(schedule), published.number("in_flight")) << published.text();
    EXPECT_LE(makespan(schedule, spec, published.costs()),
              static_cast<double>(published.number("time")))
        << published.text();
    ++rows;
  }
  EXPECT_EQ(rows, 56);
}

TEST(ControllableMemory, BuiltOrdersAreNoSlowerThanTheAuthorsUnderTheSameCap) {
  int rows = 0;
  for (const OracleRow& row : oracle_rows("oracles/controllable_memory.csv")) {
    const Published published(row);
    const ScheduleSpec spec = published.point("zbv_greedy");
    const std::size_t cap = published.number("in_flight");
    const Schedule schedule = tool::build_schedule(spec, published.costs(), {cap});
    EXPECT_LE(most_in_flight(schedule), cap) << published.text();
    EXPECT_LE(makespan(schedule, spec, published.costs()),
              static_cast<double>(published.number("time")))
        << published.text();
    ++rows;
  }
  EXPECT_GT(rows, 150);
}

// In a period of six slots a rank has F and I of its two stages, and two slots are free
// for W: each slot has at most one.
TEST(ControllableMemory, EveryBlockCanBeRepeatedWithoutAGap) {
  for (std::size_t ranks = 1; ranks <= 12; ++ranks) {
    const std::vector<BuildingBlock> blocks = building_blocks(ranks);
    EXPECT_FALSE(blocks.empty());
    const std::size_t microbatches = 6 * ranks;
    const StageCosts costs =
        uniform_costs(2 * ranks, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{0});
    const ScheduleSpec spec{
        .family = "v_min", .ranks = ranks, .microbatches = microbatches, .stages_per_rank = 2};
    const OrderModel model(costs, placement_for(spec), microbatches, {});
    for (const BuildingBlock& block : blocks) {
      const auto order = block.repeated(ranks, microbatches);
      ASSERT_TRUE(order);
      const auto time = OrderClock(model).run(*order);
      ASSERT_TRUE(time) << "it deadlocks";
      // Down and up twice, the turns, and the last microbatch's own rhythm.
      const auto ends = static_cast<std::int64_t>(2 * (block.down + 1) * ranks + block.turns[0] +
                                                  block.turns[1] + block.turns[2]);
      EXPECT_LE(*time, static_cast<std::int64_t>(6 * microbatches) + ends);
    }
  }
}

TEST(ControllableMemory, FilledOrdersRunToTheirEndWithinTheMemoryTheyHad) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::size_t ranks = 1 + random() % 6, microbatches = 1 + random() % 12;
    const ScheduleSpec spec{.family = round % 2 == 0 ? "v_half" : "zbv",
                            .ranks = ranks,
                            .microbatches = microbatches,
                            .stages_per_rank = 2};
    StageCosts costs = uniform_costs(spec.stages(), Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1},
                                     Nanoseconds{static_cast<std::int64_t>(random() % 3)});
    for (StageCost& stage : costs.stages) {
      stage.forward = Nanoseconds{static_cast<std::int64_t>(random() % 9)};
      stage.backward_input = Nanoseconds{static_cast<std::int64_t>(random() % 9)};
      stage.backward_weight = Nanoseconds{static_cast<std::int64_t>(random() % 9)};
      stage.saved = Bytes{static_cast<std::int64_t>(random() % 9)};
      stage.weight_saved = Bytes{static_cast<std::int64_t>(random() % 9)};
    }
    const Order order = *order_of(generate(spec));
    std::vector<Bytes> room;
    const OrderModel unlimited(costs, placement_for(spec), microbatches, {});
    for (std::size_t r = 0; r < ranks; ++r) room.push_back(Bytes{most_held(unlimited, order, r)});
    const OrderModel model(costs, placement_for(spec), microbatches, room);
    for (const Fill fill : {Fill::Early, Fill::Late}) {
      const Order filled = backfilled(model, order, fill);
      EXPECT_TRUE(OrderClock(model).run(filled));
      for (std::size_t r = 0; r < ranks; ++r) {
        EXPECT_TRUE(fits(model, filled, r));
        EXPECT_EQ(filled[r].size(), order[r].size());
      }
    }
  }
}

}  // namespace
}  // namespace pfeife
