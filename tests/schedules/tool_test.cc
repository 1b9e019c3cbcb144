// The verbs of pfeife-schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/backward_passes.h"
#include "planner/schedule_tool/lifetimes.h"
#include "planner/schedule_tool/verbs.h"
#include "planner/schedules/families.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife::tool {
namespace {

using ::testing::HasSubstr;

Schedule rows(const std::string& text) { return read_schedule(text, "test"); }

TEST(Costs, KeysListsAndTheirMistakes) {
  const UnitCosts costs = parse_costs("f=15:10,b=30:20,transfer=1");
  EXPECT_EQ(costs.forward, (std::vector<double>{15, 10}));
  EXPECT_EQ(costs.backward_weight, (std::vector<double>{15, 10}));
  const StageCosts stages = stage_costs_of(costs, 2);
  EXPECT_EQ(stages.stages[1].backward(), nanoseconds_from_ms(20));
  EXPECT_EQ(stages.pairs[0].backward_time, nanoseconds_from_ms(1));
  EXPECT_MESSAGE(message_of([] { parse_costs("f=1,transfr=2"); }));
  EXPECT_MESSAGE(message_of([] { parse_costs("f"); }));
  EXPECT_MESSAGE(message_of([] { parse_costs("f=-1"); }));
  EXPECT_MESSAGE(message_of([] { parse_costs("f=nan"); }));
  EXPECT_MESSAGE(message_of([] { parse_costs("f=1,"); }));
  EXPECT_EQ(parse_ms("--launch", "0.5"), 0.5);
  EXPECT_EQ(message_of([] { parse_ms("--launch", "1 us"); }),
            "--launch: '1 us': a number from 0 to 1e9 is expected, in ms");
  EXPECT_MESSAGE(message_of([] { stage_costs_of(parse_costs("f=1:2"), 3); }));
}

TEST(BackwardPasses, SplitAndMergeUndoEachOther) {
  const Schedule full = rows("0F0,,0B0,(1F0;0B1)OVERLAP_F_B\n");
  const Schedule split = rows("0F0,,0I0,0W0,(1F0;0I1;0W1)OVERLAP_F_B\n");
  EXPECT_EQ(split_backward(full), split);
  EXPECT_EQ(merge_backward(split), full);
}

TEST(BackwardPasses, OnlyNeighboursOfOneCellMerge) {
  const Schedule apart = rows("0I0,0I1,0W0,0W1\n");
  EXPECT_EQ(merge_backward(apart), apart);
  EXPECT_EQ(merge_backward(rows("0I0,0I1,0W1,0W0\n")), rows("0I0,0B1,0W0\n"));
}

TEST(Holdings, BetweenForwardAndBackwardAndBetweenIAndW) {
  const Schedule schedule = rows("0F0,0F1,0I0,0F2,0I1,0W0,0I2,0W1,0W2\n");
  EXPECT_EQ(peak_holdings(schedule, RankId{0}), (Holdings{2, 2}));
}

// By hand: 1F1B on two ranks, F 1, B 2. The last rank always has one in flight.
TEST(Holdings, OverTimeAreThoseOfTheOrder) {
  const Schedule schedule = rows("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const auto over_time = in_flight(time_schedule(schedule, {}, {}, {}).trace);
  const auto at = [](int ms, std::int64_t count) {
    return MemorySample{std::chrono::milliseconds{ms}, Bytes{count}};
  };
  EXPECT_EQ(over_time[0], (std::vector{at(0, 1), at(1, 2), at(6, 1), at(9, 0)}));
  EXPECT_EQ(over_time[1], (std::vector{at(1, 1), at(7, 0)}));
}

TEST(Holdings, OfEveryFamilyPeakOverTimeAsInTheOrder) {
  for (const Family& family : families()) {
    const Schedule schedule = generate_schedule(
        {.family = family.name, .ranks = 4, .microbatches = 8}, /*stages_per_rank_given=*/false);
    Trace trace = time_schedule(schedule, {}, {}, {}).trace;
    trace.memory = in_flight(trace);
    for (std::size_t r = 0; r < 4; ++r) {
      EXPECT_EQ(peak_memory(trace, RankId{r}).value,
                static_cast<std::int64_t>(peak_holdings(schedule, RankId{r}).in_flight))
          << family.name << " rank " << r;
      EXPECT_EQ(trace.memory[r].back().bytes, Bytes{0}) << family.name;
    }
  }
}

TEST(Grid, SaysBehindARowWhatItHoldsIfAsked) {
  EXPECT_EQ(grid_text(rows("0F0,0F1,0I0,0I1,0W0,0W1\n"), true),
            "        0                   5   in flight  I to W\n"
            "rank 0  F0  F1  I0  I1  W0  W1  2          2\n");
}

TEST(Grid, OneForwardOneBackwardOnTwoRanks) {
  EXPECT_EQ(grid_text(rows("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")),
            "        0                   5\n"
            "rank 0  F0  F1  .   .   B0  -   .   B1  -\n"
            "rank 1  .   F0  B0  -   F1  B1  -   .   .\n");
}

// F 15 / 10, B 30 / 20, transfer 1, order F0 F1 B0 B1: the makespan printed in Pfeife's Fig. 2.
TEST(Time, PfeifesFigureTwo) {
  const Timing timing = time_schedule(rows("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"),
                                      parse_costs("f=15:10,b=30:20,transfer=1"), {}, {});
  EXPECT_EQ(step_time(timing.trace), nanoseconds_from_ms(122));
  EXPECT_THAT(timing_text(timing), HasSubstr("step time 122 ms, bubble 38.52 %, critical rank 0"));
}

// The makespan of 1F1B with F = 1 and B = 2 on four ranks is 21; values are away meanwhile.
TEST(Time, StagesMayOffload) {
  const Schedule schedule = generate({.family = "1f1b", .ranks = 4, .microbatches = 4});
  const Timing timing = time_schedule(schedule, parse_costs("f=1,b=2,offload=1:1:0:0"), {}, {});
  EXPECT_EQ(step_time(timing.trace), nanoseconds_from_ms(21));
  const std::string text = write_schedule(timing.lowered);
  EXPECT_THAT(text, HasSubstr("0OFFLOAD0"));
  EXPECT_THAT(text, HasSubstr("1RELOAD0"));
  EXPECT_THAT(text, Not(HasSubstr("2OFFLOAD")));
  EXPECT_EQ(read_schedule(text, "again"), timing.lowered);
  EXPECT_EQ(violations_text(timing.lowered, {}, Mode::Train), "");
  EXPECT_EQ(time_schedule(timing.lowered, parse_costs("f=1,b=2,offload=1"), {}, {}).trace,
            timing.trace);
}

TEST(Time, AWrongScheduleIsRefusedWithTheGrid) {
  EXPECT_MESSAGE(message_of([] { time_schedule(rows("0F0,0B0\n1F0\n"), {}, {}, {}); }));
}

TEST(Lower, SkipsAndTiesOfTheCommandLine) {
  LowerRequest request;
  request.skips = {{StageId{0}, StageId{2}}};
  request.tied = {{StageId{0}, StageId{2}}};
  const Schedule lowered = lower_schedule(rows("0F0,0B0\n1F0,1B0\n2F0,2B0\n"), request);
  EXPECT_THAT(write_schedule(lowered), HasSubstr("0SKIP_SEND_F0>2"));
  EXPECT_THAT(write_schedule(lowered), HasSubstr("2REDUCE_GRAD,2OPTIMIZER_STEP"));
  request.tied = {{StageId{0}, StageId{9}}};
  EXPECT_MESSAGE(message_of([&] { lower_schedule(rows("0F0,0B0\n1F0,1B0\n2F0,2B0\n"), request); }));
}

// What a newcomer mistyped: an order that cannot be, a backward that is missing, a stage on two
// ranks.
TEST(Lower, AMistakeIsExplainedAsByValidate) {
  for (const char* text :
       {"0F0,0I0,0W0\n1F0,1W0,1I0\n", "0F0,0F1,0B0,0B1\n1F0,1F1,1B0\n", "0F0,0B0\n1F0,1B0,0F1\n"}) {
    const Schedule schedule = rows(text);
    EXPECT_EQ(message_of([&] { lower_schedule(schedule, {}); }),
              "the schedule cannot run:\n" + violations_text(schedule, {}));
  }
}

TEST(Info, CountsOfASmallSchedule) {
  EXPECT_EQ(
      info_text(rows("0F0,0F1,,0I0,0W0,0B1\n")),
      "1 ranks, 1 stages, 2 microbatches, compute-only\n"
      "bubble 0.00 % of a step of 6 units (F = 1, B = 2, I = W = 1, free transfers)\n"
      "rank  stages  cells  idle  compute  overlaps  sends  state  in flight  I to W  bubble\n"
      "0          0      6     1        5         0      0      0          2       1  0.00 %\n");
}

TEST(Generate, TakesTheFewestLoopsOfTheFamilyUnlessTold) {
  const ScheduleSpec spec{.family = "interleaved_1f1b", .ranks = 2, .microbatches = 4};
  EXPECT_EQ(stage_count(generate_schedule(spec, false)), 4u);
  EXPECT_EQ(stage_count(build_schedule(
                completed({.family = "zbv_greedy", .ranks = 2, .microbatches = 2}, false), {}, {})),
            4u);
  EXPECT_MESSAGE(message_of([&] { generate_schedule(spec, true); }));
}

}  // namespace
}  // namespace pfeife::tool
