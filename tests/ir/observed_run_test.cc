#include "planner/ir/trace/observed_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/ir/trace/lost_time.h"
#include "tests/ir/rows.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ns = Nanoseconds;
using testing::rows;

Cell cell(const std::string& text) { return *parse_cell(text).cell; }

ObservedAction action(const std::string& text, int start, int end, int busy = -1) {
  return {cell(text), ns{start}, ns{end}, ns{busy < 0 ? end - start : busy}};
}

/// One microbatch over two ranks. Predicted: every action 10, every transfer 4.
class TwoRanks : public ::testing::Test {
 protected:
  explicit TwoRanks(const Schedule& schedule = rows({"0F0 0SEND_F0 0RECV_B0 0B0",
                                                     "1RECV_F0 1F0 1B0 1SEND_B0"})) {
    graph_ = dependencies(schedule, chain(2), round_robin(2, 2), {});
    predicted_.ranks = 2;
    predicted_.events.resize(graph_.size());
    for (const TaskId id : task_order(graph_).order) {
      const Task& task = graph_.tasks[id.index()];
      Event& event = predicted_.events[id.index()];
      event.kind = task.kind, event.rank = task.rank, event.peer = task.peer;
      event.cell = task.cell;
      for (const Edge& edge : graph_.edges_into(id))
        event.start = std::max(event.start, predicted_.events[edge.from.index()].end);
      event.end = event.start + ns{task.kind == TaskKind::Transfer ? 4 : 10};
    }
  }
  const Event& event(const Trace& trace, const std::string& text) const {
    for (const Event& event : trace.events)
      if (to_string(event.cell) == text) return event;
    throw std::runtime_error(text);
  }
  std::string refusal(const std::vector<ObservedRank>& ranks) const {
    return message_of<ConfigError>([&] { observed_run(graph_, predicted_, ranks); });
  }

  DependencyGraph graph_;
  Trace predicted_;
};

// Rank 1's clock is 1000 ahead. By clock 0: 0F0 0-10, its value is read by 1F0 at 20; 1F0 20-31
// with 2 between operators, 1B0 31-45, 0B0 reads the gradient at 55 until 70. Then x1 >= 10 - 1020
// and x1 <= 55 - 1045: offset -1000, error 10.
TEST_F(TwoRanks, AreBroughtOnOneClock) {
  const ObservedRun run = observed_run(
      graph_, predicted_,
      std::vector<ObservedRank>{
          {"a", 0, RankId{0}, {action("0F0", 0, 10), action("0B0", 55, 70)}},
          {"b", 1, RankId{1}, {action("1B0", 1031, 1045), action("1F0", 1020, 1031, 9)}}});
  EXPECT_EQ(run.clocks[1], (ClockOffset{ns{-1000}, ns{10}}));
  ASSERT_EQ(run.steps.size(), 1U);
  const Trace& step = run.steps[0];
  EXPECT_EQ(step_time(step), ns{70});
  EXPECT_EQ(event(step, "1F0").start, ns{20});
  EXPECT_EQ(event(step, "1F0").launch, ns{2});
  EXPECT_EQ(event(step, "0SEND_F0").start,
            ns{10});                               // nobody says otherwise: as soon as it was made
  EXPECT_EQ(event(step, "0SEND_F0").end, ns{20});  // rank 1 waited for it
  const LostTime lost = lost_time(graph_, predicted_, step);
  EXPECT_EQ(lost.predicted, ns{48});
  EXPECT_EQ(lost.total(), ns{22});
  EXPECT_EQ(lost.of(Loss::Compute), ns{0 - 1 + 4 + 5});
  EXPECT_EQ(lost.of(Loss::Gaps), ns{2});
  EXPECT_EQ(lost.of(Loss::Transfers), ns{6 + 6});
}

class TwoMicrobatches : public TwoRanks {
 protected:
  TwoMicrobatches()
      : TwoRanks(rows({"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                       "1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1"})) {}
};

// Rank 1 still runs 1F0 when 0F1's value is sent, rank 0 still 0B0 when 1B1's is: nobody saw them
// come.
TEST_F(TwoMicrobatches, OnlyAnIdleReceiverSeesAMessageArrive) {
  const ObservedRun run =
      observed_run(graph_, predicted_,
                   std::vector<ObservedRank>{{"a",
                                              0,
                                              RankId{0},
                                              {action("0F0", 0, 10), action("0F1", 10, 20),
                                               action("0B0", 54, 64), action("0B1", 64, 74)}},
                                             {"a",
                                              0,
                                              RankId{1},
                                              {action("1F0", 14, 30), action("1F1", 30, 40),
                                               action("1B0", 40, 50), action("1B1", 50, 60)}}});
  std::vector<std::string> watched;
  for (std::size_t t = 0; t < graph_.size(); ++t)
    if (run.watched[0][t]) watched.push_back(to_string(graph_.tasks[t].cell));
  EXPECT_THAT(watched, ::testing::UnorderedElementsAre("0SEND_F0", "1SEND_B0"));
}

class TwoSlices : public TwoRanks {
 protected:
  TwoSlices()
      : TwoRanks(in_slices(rows({"0F0.0 0SEND_F0.0 0F0.1 0SEND_F0.1 "
                                 "0RECV_B0.1 0B0.1 0RECV_B0.0 0B0.0",
                                 "1RECV_F0.0 1F0.0 1RECV_F0.1 1F0.1 "
                                 "1B0.1 1SEND_B0.1 1B0.0 1SEND_B0.0"}))) {}
};

// A text says no number of slices: actions of a trace have the cells of the plan, which knows it.
TEST_F(TwoSlices, AreThoseOfThePlan) {
  const ObservedRun run =
      observed_run(graph_, predicted_,
                   std::vector<ObservedRank>{{"a",
                                              0,
                                              RankId{0},
                                              {action("0F0.0", 0, 10), action("0F0.1", 10, 20),
                                               action("0B0.1", 54, 64), action("0B0.0", 64, 74)}},
                                             {"a",
                                              0,
                                              RankId{1},
                                              {action("1F0.0", 14, 24), action("1F0.1", 24, 34),
                                               action("1B0.1", 34, 44), action("1B0.0", 44, 54)}}});
  ASSERT_EQ(run.steps.size(), 1U);
  EXPECT_EQ(event(run.steps[0], "1F0.1").start, ns{24});
  for (const Event& event : run.steps[0].events)
    for_each_action(event.cell,
                    [](const Action& action) { EXPECT_EQ(action.microbatch->slices, 2); });
}

TEST_F(TwoRanks, EachOccurrenceIsAStep) {
  const ObservedRun run =
      observed_run(graph_, predicted_,
                   std::vector<ObservedRank>{{"a",
                                              0,
                                              RankId{0},
                                              {action("0F0", 0, 10), action("0B0", 55, 70),
                                               action("0F0", 100, 110), action("0B0", 150, 160)}},
                                             {"a",
                                              0,
                                              RankId{1},
                                              {action("1F0", 20, 31), action("1B0", 31, 45),
                                               action("1F0", 120, 130), action("1B0", 130, 140)}}});
  ASSERT_EQ(run.steps.size(), 2U);
  EXPECT_EQ(step_time(run.steps[1]), ns{60});
  EXPECT_EQ(event(run.steps[1], "0F0").start, ns{0});
}

// The clocks drift by 100 between two steps: no one offset holds for both.
TEST_F(TwoRanks, DriftingClocksAreAlignedStepByStep) {
  std::vector<ObservedRank> ranks{{"a",
                                   0,
                                   RankId{0},
                                   {action("0F0", 0, 10), action("0B0", 55, 70),
                                    action("0F0", 200, 210), action("0B0", 255, 270)}},
                                  {"b",
                                   1,
                                   RankId{1},
                                   {action("1F0", 20, 31), action("1B0", 31, 45),
                                    action("1F0", 320, 331), action("1B0", 331, 345)}}};
  const ObservedRun run = observed_run(graph_, predicted_, ranks);
  EXPECT_TRUE(run.drifting);
  EXPECT_EQ(step_time(run.steps[0]), step_time(run.steps[1]));
  ranks[0].actions[1].start = ns{30};  // before the gradient is sent, whatever the clocks
  ranks[0].actions[1].end = ns{35};
  EXPECT_THAT(refusal(ranks), ::testing::HasSubstr("step 0 of the traces messages arrive before"));
}

TEST_F(TwoRanks, OfAnotherRunOrPlanAreRefusedByName) {
  const ObservedRank first{"a.json", 0, RankId{0}, {action("0F0", 0, 10), action("0B0", 55, 70)}};
  const ObservedRank second{"b.json", 1, RankId{1}, {action("1F0", 20, 31), action("1B0", 31, 45)}};
  EXPECT_EQ(refusal({first}),
            "no trace is of rank 1; the plan has 2 ranks, and each needs its trace");
  EXPECT_EQ(refusal({first, second, {"c.json", 2, RankId{1}, second.actions}}),
            "c.json: is of rank 1, as is b.json");
  EXPECT_EQ(refusal({first, {"b.json", 1, RankId{2}, {}}}),
            "b.json: is of rank 2, the plan has 2 ranks");
  ObservedRank other = second;
  other.actions.push_back(action("1F1", 50, 60));
  EXPECT_EQ(refusal({first, other}),
            "b.json: rank 1 ran 1F1, which the plan does not have there: these are traces of "
            "another plan");
  other.actions = {action("1F0", 20, 31), action("1B0", 31, 45), action("1F0", 50, 60)};
  EXPECT_EQ(refusal({first, other}),
            "b.json: rank 1 ran 1F0 2 times in the trace, 0F0 of rank 0 ran 1 times; record the "
            "same whole steps on every rank");
  other.actions = {action("1F0", 31, 45), action("1B0", 20, 31)};
  EXPECT_EQ(refusal({first, other}),
            "b.json: rank 1 ran 1B0 before 1F0, the plan has it behind: this is another schedule");
}

}  // namespace
}  // namespace pfeife
