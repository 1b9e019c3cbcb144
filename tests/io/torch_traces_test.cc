// Traces that torch 2.11 wrote itself, tests/data/torch_traces: found, aligned, and explained.
#include <gtest/gtest.h>

#include "planner/io/plan/schedule_csv.h"
#include "planner/io/traces/profile_reader.h"
#include "planner/ir/schedule/lower.h"
#include "planner/ir/trace/lost_time.h"
#include "planner/ir/trace/observed_run.h"

namespace pfeife {
namespace {

constexpr Nanoseconds kUnit{100'000};

/// What the schedule would take if each pass took 100 us and transfers nothing.
Trace even_trace(const DependencyGraph& graph) {
  Trace trace{.ranks = graph.ranks};
  trace.events.resize(graph.size());
  for (const TaskId id : task_order(graph).order) {
    const Task& task = graph.tasks[id.index()];
    Event& event = trace.events[id.index()];
    event.kind = task.kind, event.rank = task.rank, event.peer = task.peer;
    event.cell = task.cell;
    for (const Edge& edge : graph.edges_into(id))
      event.start = std::max(event.start, trace.events[edge.from.index()].end);
    event.end = event.start + (task.kind == TaskKind::Compute ? kUnit : Nanoseconds{0});
  }
  return trace;
}

class TorchTraces : public ::testing::TestWithParam<std::pair<const char*, std::size_t>> {};

TEST_P(TorchTraces, AreTheirSchedulesOnOneClock) {
  const auto& [name, steps] = GetParam();
  const std::filesystem::path folder =
      std::filesystem::path(PFEIFE_SOURCE_DIR) / "tests/data/torch_traces" / name;
  const Schedule schedule = read_schedule_file(folder / "schedule.csv");
  const Placement placement = placement_of(schedule).value();
  const StageCosts costs = uniform_costs(placement.stages(), kUnit, kUnit, kUnit, Nanoseconds{0});
  const DependencyGraph graph =
      dependencies(lower(schedule, costs, placement), chain(placement.stages()), placement, {});
  std::vector<ObservedRank> ranks;
  for (std::size_t r = 0; r < 2; ++r)
    for (ObservedRank& rank : read_profile(folder / ("rank" + std::to_string(r) + ".json.gz"), r))
      ranks.push_back(std::move(rank));
  const Trace predicted = even_trace(graph);
  const ObservedRun run = observed_run(graph, predicted, ranks);
  EXPECT_EQ(run.steps.size(), steps);
  EXPECT_TRUE(run.optimizer);
  // Both ranks ran on one host: their clocks are one, which must be within the error.
  EXPECT_FALSE(run.drifting);
  EXPECT_LE(std::abs(run.clocks[1].offset.count()), run.clocks[1].error.count());
  for (const Trace& step : run.steps) {
    const LostTime lost = lost_time(graph, predicted, step);
    EXPECT_EQ(lost.total(), step_time(step) - step_time(predicted));
    for (std::size_t t = 0; t < graph.size(); ++t) {
      EXPECT_LE(step.events[t].start, step.events[t].end);
      if (std::holds_alternative<Overlap>(graph.tasks[t].cell)) continue;
      for (const Edge& edge : graph.edges_into(TaskId{t}))
        EXPECT_LE(step.events[edge.from.index()].end, step.events[t].start)
            << to_string(graph.tasks[edge.from.index()].cell) << " before "
            << to_string(graph.tasks[t].cell);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, TorchTraces,
                         ::testing::Values(std::pair{"gpipe", 2}, std::pair{"1f1b", 2},
                                           std::pair{"interleaved_1f1b", 2},
                                           std::pair{"looped_bfs", 2},
                                           std::pair{"interleaved_zb", 1}, std::pair{"zbv", 1},
                                           std::pair{"dualpipev", 1}),
                         [](const auto& test) { return std::string("S_") + test.param.first; });

}  // namespace
}  // namespace pfeife
