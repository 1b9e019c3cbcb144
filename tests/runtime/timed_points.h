// Pipelines of waits: a point of each family with unequal stages, a skip and a shared parameter.
#pragma once

#include <gtest/gtest.h>

#include "planner/cost/estimate/estimator.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/runtime/timed_run.h"

namespace pfeife::testing {

/// Unequal stages of 48 ms and more an action (an idle virtual machine may wake 0.2 ms late), 64
/// KiB to 1 MiB a message, a skip over two stages, one parameter shared by the first and the last
/// stage if they are on two ranks.
inline StageCosts uneven_costs(const Placement& placement) {
  const std::size_t stages = placement.stages();
  const StageId last{static_cast<std::int64_t>(stages) - 1};
  StageCosts costs = uniform_costs(stages, {}, {}, {}, {});
  for (std::size_t s = 0; s < stages; ++s) {
    StageCost& cost = costs.stages[s];
    cost.forward = std::chrono::milliseconds(48 + 3 * (s % 3));
    cost.backward_input = std::chrono::milliseconds(51 + 3 * (s % 2));
    cost.backward_weight = std::chrono::milliseconds(48 + 3 * ((s + 1) % 2));
    cost.optimizer = std::chrono::milliseconds(48);
  }
  costs.pairs.push_back({StageId{1}, StageId{3}, {}, {}, {}, {}});
  std::ranges::sort(costs.pairs, {}, [](const StagePair& p) { return std::pair{p.from, p.to}; });
  if (placement.rank(StageId{0}) != placement.rank(last))
    costs.reductions.push_back({{StageId{0}, last}, Bytes{4096}, std::chrono::milliseconds(45)});
  for (StagePair& pair : costs.pairs) {
    pair.bytes = Bytes{65536 << (pair.from.value % 5)};
    pair.gradient_bytes = pair.bytes;
    pair.forward_time = std::chrono::milliseconds(2 + pair.from.value % 3);
    pair.backward_time = std::chrono::milliseconds(3);
  }
  return costs;
}

struct Point {
  TimedPipeline pipeline;
  Nanoseconds predicted{0};
};

inline Point point_of(const ScheduleSpec& spec) {
  const Placement placement = placement_for(spec);
  const StageCosts costs = uneven_costs(placement);
  Point point{{dependencies(lower(generate(spec), costs, placement), stage_graph(costs), placement,
                            Semantics{}),
               placement,
               costs,
               {}},
              {}};
  const DependencyGraph& graph = point.pipeline.tasks;
  const auto by_slot = slot_durations(graph.slots, costs);
  for (const Task& task : graph.tasks) point.pipeline.durations.push_back(by_slot[task.slot]);
  point.predicted = step_time(std::get<Trace>(estimate(graph, costs)));
  return point;
}

/// A point of each family: twice as many microbatches as ranks; above 8 ranks as many as ranks,
/// where the family accepts that.
inline std::vector<ScheduleSpec> points(std::size_t ranks) {
  std::vector<ScheduleSpec> found;
  for (const Family& family : families()) {
    ScheduleSpec spec{family.name, ranks, ranks <= 8 ? 2 * ranks : ranks, 1, {}, {}};
    while (refusal(spec) && spec.stages_per_rank < 2) ++spec.stages_per_rank;
    if (refusal(spec)) spec.microbatches = 2 * ranks;
    if (spec.family == "1f1b" || spec.family == "looped") spec.prefetch = {1};
    EXPECT_FALSE(refusal(spec)) << family.name;
    found.push_back(spec);
  }
  return found;
}

}  // namespace pfeife::testing
