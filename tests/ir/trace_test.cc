#include "planner/ir/trace/trace.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pfeife
