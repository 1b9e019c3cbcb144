#include "planner/cost/estimate/estimator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

/// A random chain, or one with skips, whose stages and messages all differ.
StageCosts random_costs(std::mt19937& random, std::size_t stages, bool skips) {
  StageCosts costs =
      uniform_costs(stages, Nanoseconds{0}, Nanoseconds{0}, Nanoseconds{0}, Nanoseconds{0});
  const auto some = [&] { return Nanoseconds{1 + random() % 1000}; };
  for (StageCost& stage : costs.stages) {
    stage.forward = some(), stage.backward_input = some(), stage.backward_weight = some(),
    stage.optimizer = some();
  }
  for (std::size_t from = 0; skips && from + 2 < stages; ++from)
    if (random() % 2) {
      const StageId a{from},
          b{static_cast<std::int64_t>(from + 2 + random() % (stages - from - 2))};
      const bool gradient = random() % 2 != 0;
      costs.pairs.push_back({a, b, Bytes{1}, Bytes{gradient ? 1 : 0}, {}, {}, gradient});
      costs.values.push_back({a, {b}, Bytes{1}, costs.pairs.back().gradient_bytes, false, {false}});
    }
  std::ranges::sort(costs.pairs, {}, [](const StagePair& p) { return std::pair{p.from, p.to}; });
  for (StagePair& pair : costs.pairs) pair.forward_time = some(), pair.backward_time = some();
  return costs;
}

/// The longest path, by relaxing every edge until nothing changes: slow and obviously right.
std::vector<Nanoseconds> ends_by_relaxation(const DependencyGraph& graph, const StageCosts& costs) {
  const std::vector<Nanoseconds> durations = slot_durations(graph.slots, costs);
  std::vector<Nanoseconds> end(graph.size(), Nanoseconds{0});
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t t = 0; t < graph.size(); ++t) {
      Nanoseconds start{0};
      for (const Edge& edge : graph.edges_into(TaskId{t}))
        start = std::max(start, end[edge.from.index()]);
      const Nanoseconds now = start + durations[graph.tasks[t].slot];
      changed = changed || now != end[t];
      end[t] = now;
    }
  }
  return end;
}

TEST(Estimator, TraceMakespanAndLanesAgreeWithRelaxationForEveryQueueSetting) {
  std::mt19937 random(3);
  for (const ScheduleSpec& spec : search_set(4, 8, std::vector<std::size_t>{1, 2, 3})) {
    const StageCosts costs = random_costs(random, spec.stages(), random() % 2 == 0);
    const Placement placement = placement_for(spec);
    const Schedule lowered = lower(generate(spec), costs, placement);
    for (const Queues queues : {Queues::None, Queues::Edge, Queues::Pair, Queues::Rank}) {
      const DependencyGraph graph =
          dependencies(lowered, stage_graph(costs), placement, {.queues = queues});
      const auto outcome = estimate(graph, costs);
      ASSERT_TRUE(std::holds_alternative<Trace>(outcome)) << spec.family << " " << knobs(spec);
      const Trace& trace = std::get<Trace>(outcome);
      const std::vector<Nanoseconds> expected = ends_by_relaxation(graph, costs);
      for (std::size_t t = 0; t < graph.size(); ++t) ASSERT_EQ(trace.events[t].end, expected[t]);

      const CompiledGraph compiled(graph);
      std::vector<std::int64_t> one;
      std::vector<double> many;
      constexpr std::size_t kCount = 19;  // not a multiple of the lanes
      for (const Nanoseconds d : slot_durations(graph.slots, costs)) {
        one.push_back(d.count());
        for (std::size_t i = 0; i < kCount; ++i)
          many.push_back(static_cast<double>(d.count() * static_cast<std::int64_t>(i)));
      }
      EXPECT_EQ(compiled.makespan(one), step_time(trace).count());
      std::vector<double> out(kCount);
      compiled.makespans(many, kCount, out);
      for (std::size_t i = 0; i < kCount; ++i)  // durations times i: the makespan times i
        EXPECT_EQ(out[i],
                  static_cast<double>(step_time(trace).count() * static_cast<std::int64_t>(i)));
    }
  }
}

TEST(Estimator, AttributionAddsUpToTheStepOnEveryRank) {
  std::mt19937 random(4);
  for (const ScheduleSpec& spec : search_set(4, 8, std::vector<std::size_t>{1, 2})) {
    StageCosts costs = random_costs(random, spec.stages(), true);
    costs.reductions.push_back(
        {{StageId{0}, StageId{spec.stages() - 1}}, Bytes{1}, Nanoseconds{77}});
    const Placement placement = placement_for(spec);
    const Schedule lowered = lower(generate(spec), costs, placement);
    const DependencyGraph graph =
        dependencies(lowered, stage_graph(costs), placement, {.queues = Queues::Pair});
    const auto outcome = estimate(graph, costs, {.launch_overhead = Nanoseconds{5}});
    const Trace& trace = std::get<Trace>(outcome);
    for (std::int64_t r = 0; r < 4; ++r) {
      const Attribution a = attribution(trace, RankId{r});
      EXPECT_EQ(a.total(), step_time(trace));
      for (const Nanoseconds term : {a.compute, a.dependency_wait, a.exposed_transfer, a.queue_wait,
                                     a.launch, a.reduction, a.optimizer})
        EXPECT_GE(term, Nanoseconds{0});
    }
  }
}

TEST(Estimator, StepIsNeverBelowTheBusiestRankAndNeverShrinksWithSlowerTransfers) {
  std::mt19937 random(5);
  for (const ScheduleSpec& spec : search_set(3, 6, std::vector<std::size_t>{1, 2})) {
    StageCosts costs = random_costs(random, spec.stages(), true);
    const Placement placement = placement_for(spec);
    const Schedule lowered = lower(generate(spec), costs, placement);
    const DependencyGraph graph =
        dependencies(lowered, stage_graph(costs), placement, {.queues = Queues::Rank});
    const Trace before = std::get<Trace>(estimate(graph, costs));
    for (std::int64_t r = 0; r < 3; ++r) EXPECT_GE(step_time(before), busy_time(before, RankId{r}));
    for (StagePair& pair : costs.pairs) pair.forward_time += Nanoseconds{random() % 500};
    EXPECT_GE(step_time(std::get<Trace>(estimate(graph, costs))), step_time(before));
  }
}

}  // namespace
}  // namespace pfeife
