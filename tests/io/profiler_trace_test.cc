#include "planner/io/results/profiler_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "planner/io/traces/profile_reader.h"
#include "planner/ir/trace/observed_run.h"

namespace pfeife {
namespace {

class ProfilerTrace : public ::testing::Test {
 protected:
  ProfilerTrace()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("profiler_trace_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~ProfilerTrace() override { std::filesystem::remove_all(folder_); }

  /// A step of 1F1B of two ranks and one microbatch: each task 1000 ns and `longer` of it more,
  /// times 100; transfers have a gap of 50 ns to what they bring.
  Trace step(int longer) const {
    Trace trace{.source = TraceSource::Measured, .ranks = 2};
    Nanoseconds now{500 + longer};
    for (const Task& task : graph_.tasks) {
      trace.events.push_back({.kind = task.kind,
                              .rank = task.rank,
                              .peer = task.peer,
                              .parties = task.parties,
                              .cell = task.cell});
    }
    for (const TaskId id : task_order(graph_).order) {
      Event& event = trace.events[id.index()];
      event.start = now;
      event.end = now + Nanoseconds{1001 + 100 * longer * (1 + id.value)};
      now = event.end + Nanoseconds{event.kind == TaskKind::Transfer ? 50 : 3};
    }
    return trace;
  }
  static DependencyGraph graph() {
    constexpr StageId first{0}, second{1};
    constexpr MicrobatchId only{0};
    const Schedule schedule{
        {{forward(first, only), send(first, second, only, Direction::Forward),
          recv(first, second, only, Direction::Backward), backward(first, only),
          stage_action(Op::OptimizerStep, first)},
         {recv(second, first, only, Direction::Forward), forward(second, only),
          backward(second, only), send(second, first, only, Direction::Backward),
          stage_action(Op::OptimizerStep, second)}}};
    return dependencies(schedule, {2, {{first, second, true}}, {}}, round_robin(2, 2), Semantics{});
  }

  const DependencyGraph graph_ = graph();
  std::filesystem::path folder_;
};

TEST_F(ProfilerTrace, GivesEveryTimeBack) {
  const std::vector<Trace> steps{step(1), step(3)};
  std::vector<ObservedRank> ranks;
  for (std::size_t r = 0; r < 2; ++r) {
    const std::filesystem::path file = folder_ / ("rank" + std::to_string(r) + ".json");
    std::ofstream(file) << profiler_trace(steps, RankId{r});
    for (ObservedRank& rank : read_profile(file, 0)) ranks.push_back(std::move(rank));
  }
  const ObservedRun run = observed_run(graph_, steps[0], ranks);
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_TRUE(run.optimizer);
  for (std::size_t k = 0; k < 2; ++k) {
    const Nanoseconds shift = run.steps[k].events[0].start - steps[k].events[0].start;
    for (std::size_t e = 0; e < steps[k].events.size(); ++e) {
      const Event &back = run.steps[k].events[e], &written = steps[k].events[e];
      EXPECT_EQ(back.cell, written.cell);
      EXPECT_EQ(back.start - shift, written.start) << to_string(written.cell);
      EXPECT_EQ(back.end - shift, written.end) << to_string(written.cell);
    }
  }
}

// What HTA and TensorBoard's plugin look for: the rank, ranges of steps, operators in ranges.
TEST_F(ProfilerTrace, HasWhatReadersOfTorchLookFor) {
  const auto json = nlohmann::json::parse(profiler_trace(std::vector{step(1), step(2)}, RankId{1}));
  EXPECT_EQ(json["schemaVersion"], 1);
  EXPECT_EQ(json["distributedInfo"]["rank"], 1);
  EXPECT_EQ(json["distributedInfo"]["world_size"], 2);
  int steps = 0, operators = 0;
  double end = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], length = event["dur"];
    if (event["name"].get<std::string>().starts_with("ProfilerStep#")) {
      EXPECT_EQ(event["name"], "ProfilerStep#" + std::to_string(steps++));
      EXPECT_GT(begin, end - 1e-9) << "steps do not overlap";
      end = begin + length;
    } else {
      EXPECT_LE(begin + length, end + 1e-3) << "within the step";
    }
    operators += event["cat"] == "cpu_op";
  }
  double last = 0;
  for (const std::size_t r : {0, 1}) {
    const auto rank =
        nlohmann::json::parse(profiler_trace(std::vector{step(1), step(2)}, RankId{r}));
    for (const auto& event : rank["traceEvents"])
      if (event["ph"] == "X" && !event["name"].get<std::string>().starts_with("ProfilerStep#"))
        last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_NEAR(last, end, 1e-6) << "of all ranks";
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(operators, 2 * 3) << "F, B and the optimizer's step of rank 1";
}

}  // namespace
}  // namespace pfeife
