#include "planner/ir/result/figures.h"

#include <gtest/gtest.h>

namespace pfeife {
namespace {

Event task(TaskKind kind, int rank, int start, int end) {
  Event event;
  event.kind = kind;
  event.rank = event.peer = RankId{rank};
  event.start = event.posted = Nanoseconds{start};
  event.end = Nanoseconds{end};
  return event;
}

/// Rank 0 computes 0-10 and 40-60 and steps its optimizer until 63, rank 1 computes 12-40 and steps
/// until 70: the step takes 70, without optimizers 60, and no rank is at work for longer than 63.
Trace example_trace() {
  Trace trace;
  trace.ranks = 3;  // the last one has nothing to do
  trace.events = {task(TaskKind::Compute, 0, 0, 10),    task(TaskKind::Transfer, 0, 10, 12),
                  task(TaskKind::Compute, 1, 12, 40),   task(TaskKind::Compute, 0, 40, 60),
                  task(TaskKind::Optimizer, 1, 60, 70), task(TaskKind::Optimizer, 0, 60, 63)};
  return trace;
}

TEST(Figures, SpanIsTheLongestTimeOfARankFromItsFirstActionToItsLast) {
  EXPECT_EQ(step_time(example_trace()), Nanoseconds{70});
  EXPECT_EQ(span(example_trace()), Nanoseconds{63});
  EXPECT_EQ(span({}), Nanoseconds{0});
}

TEST(Figures, WithoutTheOptimizerAStepEndsWithTheLastBackward) {
  EXPECT_EQ(step_without_optimizer(example_trace()), Nanoseconds{60});
  EXPECT_EQ(step_without_optimizer({}), Nanoseconds{0});
}

}  // namespace
}  // namespace pfeife
