#include "planner/ir/trace/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "planner/ir/basics/error.h"
#include "planner/ir/trace/trace_lanes.h"

namespace pfeife {
namespace {

using ns = Nanoseconds;

Event compute(int rank, int stage, int microbatch, int start, int end) {
  Event event;
  event.rank = event.peer = RankId{rank};
  event.cell = Action{Op::Forward, StageId{stage}, MicrobatchId{microbatch}, Direction::Forward,
                      std::nullopt};
  event.start = event.posted = ns{start};
  event.end = ns{end};
  return event;
}

/// Rank 0 computes 0-10, the transfer is ready at 10, starts at 13, ends at 18; rank 1 launches
/// 18-19, computes 19-30.
Trace example() {
  Trace trace;
  trace.ranks = 2;
  trace.events = {compute(0, 0, 0, 0, 10), compute(1, 1, 0, 18, 30)};
  Event transfer;
  transfer.kind = TaskKind::Transfer;
  transfer.rank = RankId{0};
  transfer.peer = RankId{1};
  transfer.posted = ns{10};
  transfer.start = ns{13};
  transfer.end = ns{18};
  transfer.waited_for = 0;
  trace.events.push_back(transfer);
  trace.events[1].launch = ns{1};
  trace.events[1].waited_for = 2;
  return trace;
}

TEST(Attribution, SplitsAWaitIntoDependencyQueueAndTransfer) {
  const Attribution on1 = attribution(example(), RankId{1});
  EXPECT_EQ(on1.dependency_wait, ns{10});
  EXPECT_EQ(on1.queue_wait, ns{3});
  EXPECT_EQ(on1.exposed_transfer, ns{5});
  EXPECT_EQ(on1.launch, ns{1});
  EXPECT_EQ(on1.compute, ns{11});
  EXPECT_EQ(on1.total(), step_time(example()));
}

TEST(Attribution, TimeAfterARanksLastActionIsDependencyWait) {
  const Attribution on0 = attribution(example(), RankId{0});
  EXPECT_EQ(on0.compute, ns{10});
  EXPECT_EQ(on0.dependency_wait, ns{20});
  EXPECT_EQ(on0.total(), ns{30});
}

TEST(Trace, BubbleIsWhatComputeLeavesOfRanksTimesStep) {
  EXPECT_DOUBLE_EQ(bubble(example()), 1 - (10.0 + 11.0) / (2 * 30.0));
  EXPECT_EQ(critical_rank(example()), RankId{1});
  EXPECT_EQ(bubble(Trace{}), 0);
  EXPECT_EQ(step_time(Trace{}), ns{0});
}

TEST(Trace, AReductionEndsOnAllItsPartiesAndTheLowestOfThoseThatEndLastIsCritical) {
  Trace trace = example();
  Event reduction;
  reduction.kind = TaskKind::Reduction;
  reduction.rank = reduction.peer = RankId{1};
  reduction.parties = {RankId{1}, RankId{0}};
  reduction.start = reduction.posted = ns{30};
  reduction.end = ns{34};
  trace.events.push_back(reduction);
  EXPECT_EQ(critical_rank(trace), RankId{0});
  trace.events.back().parties = {RankId{1}};
  EXPECT_EQ(critical_rank(trace), RankId{1});
  EXPECT_EQ(bubble(trace, RankId{0}), 1 - 10.0 / 34);
  EXPECT_EQ(bubble(trace, RankId{1}), 1 - 11.0 / 34);
}

TEST(Trace, StepStartsWithTheFirstEventNotAtZero) {
  Trace trace = example();
  for (Event& event : trace.events) event.posted += ns{5}, event.start += ns{5}, event.end += ns{5};
  EXPECT_EQ(step_time(trace), ns{30});
  EXPECT_EQ(attribution(trace, RankId{1}), attribution(example(), RankId{1}));
}

Event event(TaskKind kind, int rank, int start, int end, std::vector<RankId> parties = {}) {
  Event e;
  e.kind = kind;
  e.rank = e.peer = RankId{rank};
  e.parties = std::move(parties);
  e.start = e.posted = Nanoseconds{start};
  e.end = Nanoseconds{end};
  return e;
}

TEST(TraceLanes, TransfersAtTheSameTimeGetLanesOfTheirOwn) {
  Trace trace;
  trace.ranks = 1;
  trace.events = {event(TaskKind::Transfer, 0, 0, 5), event(TaskKind::Transfer, 0, 3, 8),
                  event(TaskKind::Transfer, 0, 5, 6), event(TaskKind::Compute, 0, 0, 9)};
  const auto rows = lanes(trace);
  EXPECT_EQ(rows[0].communication,
            (std::vector<LaneItem>{{0, 0, false}, {1, 1, false}, {2, 0, false}}));
  EXPECT_EQ(rows[0].communication_lanes, 2u);
  EXPECT_EQ(rows[0].compute, (std::vector<LaneItem>{{3, 0, false}}));
  EXPECT_EQ(rows[0].compute_lanes, 1u);
}

TEST(TraceLanes, ReductionsVisitTheirOtherParties) {
  Trace trace;
  trace.ranks = 3;
  trace.events = {event(TaskKind::Reduction, 0, 0, 5, {RankId{0}, RankId{2}})};
  const auto rows = lanes(trace);
  EXPECT_EQ(rows[0].communication, (std::vector<LaneItem>{{0, 0, false}}));
  EXPECT_TRUE(rows[1].communication.empty());
  EXPECT_EQ(rows[2].communication, (std::vector<LaneItem>{{0, 0, true}}));
}

TEST(TraceLanes, EventsOfUnknownRanksAreRefused) {
  Trace trace;
  trace.ranks = 1;
  trace.events = {event(TaskKind::Compute, 1, 0, 5)};
  EXPECT_THROW(lanes(trace), InternalError);
}

TEST(TraceLanes, NoTwoEventsOfALaneOverlapAndEveryEventIsThereOnce) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Trace trace;
    trace.ranks = 3;
    for (int i = 0; i < 40; ++i) {
      const int start = static_cast<int>(random() % 50);
      trace.events.push_back(event(static_cast<TaskKind>(random() % 4),
                                   static_cast<int>(random() % 3), start,
                                   start + static_cast<int>(random() % 9), {RankId{1}}));
    }
    std::vector<int> seen(trace.events.size(), 0);
    for (const RankLanes& row : lanes(trace))
      for (const auto* items : {&row.compute, &row.communication}) {
        std::map<std::size_t, Nanoseconds> busy_until;
        for (const LaneItem& item : *items) {
          const Event& e = trace.events[item.event];
          EXPECT_GE(e.start, busy_until[item.lane]);
          busy_until[item.lane] = e.end;
          seen[item.event] += item.guest ? 0 : 1;
        }
      }
    EXPECT_EQ(seen, std::vector<int>(trace.events.size(), 1));
  }
}

}  // namespace
}  // namespace pfeife
