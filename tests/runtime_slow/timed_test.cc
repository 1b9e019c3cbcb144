// Timed stages: pipelines of 4, 8 and 16 ranks take as long as the estimate says, to the
// nanosecond, by clocks that only the waits move. (Without contention simulator and estimator agree
// to the nanosecond: tests/sim.) Where ranks really wait, every edge holds and nothing takes less
// than its waits; how much more is a figure of benchmark_timed.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "planner/io/files/atomic_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/io/results/chrome_trace.h"
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

Trace run_by_virtual_clocks(const TimedPipeline& pipeline) {
  Trace trace;
  run_ranks(pipeline.placement.ranks(), at::kCPU, [&](RankId rank, Transport& transport) {
    const VirtualClock clock;
    TimedMeasurement own = measure_timed(pipeline, rank, 1, {}, transport);
    if (rank == RankId{0}) trace = std::move(own.trace);
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
    TimedMeasurement own = measure_timed(pipeline, rank, 1, {}, *transport);
    if (rank == RankId{0}) trace = std::move(own.trace);
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

/// The figure in front of `what`.
double figure(const std::string& text, const std::string& what) {
  const std::size_t end = text.find(" " + what), begin = text.rfind(' ', end - 1) + 1;
  return end == std::string::npos ? 0 : std::stod(text.substr(begin, end - begin));
}

// As a user does it: a trace.json with estimated times, ranks that are processes. How much longer
// it takes is a figure of benchmark_timed.
TEST(PfeifeRunTimed, TakesNoLessThanTheTraceEstimatesOnProcesses) {
  const ScheduleSpec spec{"1f1b", 8, 16, 1, {}, {}};
  const testing::Model model("tiny_gpt");
  const Pipeline pipeline = model.pipeline(spec);
  StageCosts costs = unit_costs(pipeline.graph, pipeline.split, pipeline.placement);
  for (StageCost& cost : costs.stages)
    cost.forward = cost.backward_input = cost.backward_weight = cost.optimizer =
        std::chrono::milliseconds(48);
  for (StagePair& pair : costs.pairs)
    pair.forward_time = pair.backward_time = std::chrono::milliseconds(2);
  const Trace estimated = std::get<Trace>(estimate(pipeline.tasks, costs));

  std::string folder = ::testing::TempDir() + "timed_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream trace(folder + "/trace.json");
  write_chrome_trace(trace, estimated, "waits");
  trace.close();
  write_file(folder + "/schedule.csv", write_schedule(generate(spec)));
  std::string command = PFEIFE_RUN " train --model " + testing::model_path("tiny_gpt").string() +
                        " --schedule " + folder + "/schedule.csv --timed=" + folder +
                        "/trace.json --steps 3 --cuts '";
  for (const NodeId cut : model.even_cuts(spec.stages())) command += to_string(cut) + " ";
  const double expected = seconds(step_time(estimated)) * 1e3;
  std::string text;
  FILE* pipe = popen((command + "' 2>&1").c_str(), "r");
  char line[512];
  while (fgets(line, sizeof line, pipe) != nullptr) text += line;
  EXPECT_EQ(pclose(pipe), 0) << text;
  std::printf("%s", text.c_str());
  EXPECT_NEAR(figure(text, "ms estimated"), expected, 1e-3) << text;
  EXPECT_GE(figure(text, "ms measured"), expected) << text;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pfeife
