#include "planner/mesh/stage_reductions.h"

#include <algorithm>

#include "planner/cost/estimate/estimator.h"
#include "planner/ir/schedule/dependency_graph.h"

namespace pfeife {

void schedule_reductions(const MeshLayers& made, const Partition& partition, StageCosts& costs) {
  std::vector<StageId> stage_of;  // [layer]
  for (std::size_t s = 0; s < partition.stages(); ++s)
    stage_of.resize(partition.end(s, made.layers.size()), StageId{s});
  std::vector<bool> tied(partition.stages(), false);
  for (const StageReduction& reduction : costs.reductions)
    for (const StageId s : reduction.stages) tied[s.index()] = true;
  std::vector<StageReduction> own(partition.stages());
  for (std::size_t p = 0; p < made.reduction.size(); ++p) {
    // With the first of its stages, as stage_costs() has it: they are all on one rank.
    const LayerParameter& parameter = made.layers.parameters[p];
    const std::size_t s = stage_of[parameter.users.front().index()].index();
    if (tied[s]) continue;
    own[s].bytes += parameter.gradient;
    own[s].time += made.reduction[p];
  }
  for (std::size_t s = 0; s < own.size(); ++s) {
    if (own[s].time == Nanoseconds{0}) continue;
    own[s].stages = {StageId{s}};
    costs.stages[s].optimizer -= own[s].time;
    costs.reductions.push_back(own[s]);
  }
}

std::vector<Nanoseconds> optimizer_waits(const Schedule& lowered, const StageCosts& costs,
                                         const Placement& placement) {
  const DependencyGraph graph = dependencies(lowered, stage_graph(costs), placement, Semantics{});
  const Trace trace = std::get<Trace>(estimate(graph, costs));
  std::vector<Nanoseconds> waits(graph.ranks), done(graph.ranks);
  for (std::size_t t = 0; t < graph.size(); ++t) {  // of each rank in the order of its row
    const Task& task = graph.tasks[t];
    if (task.kind != TaskKind::Compute && task.kind != TaskKind::Optimizer) continue;
    const Event& event = trace.events[t];
    if (task.kind == TaskKind::Optimizer)
      waits[task.rank.index()] += event.start - done[task.rank.index()];
    done[task.rank.index()] = event.end;
  }
  return waits;
}

}  // namespace pfeife
