// Timed stages: pipelines of 4, 8 and 16 ranks take as long as the estimate says, to the
// nanosecond, by clocks that only the waits move. (Without contention simulator and estimator agree
// to the nanosecond: tests/sim.) Where ranks really wait, every edge holds and nothing takes less
// than its waits; how much more is a figure of benchmark_timed.
#include <gtest/gtest.h>

#include "runtime/launch/join.h"
#include "runtime/launch/rank_threads.h"
#include "tests/runtime/pipelines.h"
#include "tests/runtime/test_meetings.h"
#include "tests/runtime/timed_points.h"
#include "tests/runtime_slow/virtual_clock.h"

namespace pfeife {
namespace {

using testing::Point;
using testing::point_of;
using testing::run_timed;
using testing::TimedPipeline;

Trace run_by_virtual_clocks(const TimedPipeline& pipeline) {
  Trace trace;
  run_ranks(pipeline.placement.ranks(), at::kCPU, [&](RankId rank, Transport& transport) {
    const VirtualClock clock;
    Trace own = run_timed(pipeline, rank, transport);
    if (rank == RankId{0}) trace = std::move(own);
  });
  return trace;
}

class TimedStages : public ::testing::TestWithParam<std::size_t> {};

TEST_P(TimedStages, TakeAsLongAsEstimatedInEveryFamily) {
  for (const ScheduleSpec& spec : testing::points(GetParam())) {
    const Point point = point_of(spec);
    const Trace trace = run_by_virtual_clocks(point.pipeline);
    EXPECT_EQ(step_time(trace), point.predicted) << testing::name_of(spec);
    EXPECT_EQ(broken_edge(point.pipeline.tasks, trace), "") << testing::name_of(spec);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, TimedStages, ::testing::Values(4, 8, 16));

/// Every rank by itself, its messages through sockets.
Trace run_over_sockets(const TimedPipeline& pipeline) {
  testing::MeetingOfThreads meeting;
  Trace trace;
  run_ranks(pipeline.placement.ranks(), at::kCPU, [&](RankId rank, Transport&) {
    const auto transport = join_by_sockets(meeting, rank, pipeline.placement.ranks());
    Trace own = run_timed(pipeline, rank, *transport);
    if (rank == RankId{0}) trace = std::move(own);
  });
  return trace;
}

TEST(TimedStagesOverSockets, KeepEveryEdgeAndTakeNoLessThanTheirWaits) {
  for (const ScheduleSpec& spec :
       {ScheduleSpec{"1f1b", 8, 8, 1, {}, {}}, {"zbv", 4, 8, 2, {}, {}}}) {
    const Point point = point_of(spec);
    const Trace trace = run_over_sockets(point.pipeline);
    EXPECT_EQ(broken_edge(point.pipeline.tasks, trace), "") << testing::name_of(spec);
    EXPECT_GE(step_time(trace), point.predicted) << testing::name_of(spec);
  }
}

}  // namespace
}  // namespace pfeife
