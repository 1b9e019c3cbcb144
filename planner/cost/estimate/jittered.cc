#include "planner/cost/estimate/jittered.h"

#include <algorithm>

#include "planner/cost/estimate/estimator.h"

namespace pfeife {
namespace {

/// The same graph with a duration for each task instead of one for each stage.
DependencyGraph with_own_durations(DependencyGraph graph) {
  graph.slots.assign(graph.size(), {});
  for (std::size_t t = 0; t < graph.size(); ++t)
    graph.tasks[t].slot = static_cast<std::uint32_t>(t);
  return graph;
}

}  // namespace

std::vector<Nanoseconds> jittered_estimates(const DependencyGraph& graph, const StageCosts& costs,
                                            const Placement& placement, const Cluster& cluster,
                                            const Jitter& jitter, std::size_t repetitions) {
  constexpr std::size_t kLanes = CompiledGraph::kLanes;
  const CompiledGraph compiled(with_own_durations(graph));
  const std::vector<Nanoseconds> times = slot_durations(graph.slots, costs);
  std::vector<double> durations(graph.size() * kLanes), steps(kLanes);
  std::vector<Nanoseconds> found;
  for (std::size_t first = 0; first < repetitions; first += kLanes) {
    const std::size_t used = std::min(kLanes, repetitions - first);
    std::vector<JitterSource> runs;
    for (std::size_t k = 0; k < used; ++k) runs.emplace_back(jitter, first + k);
    for (std::size_t t = 0; t < graph.size(); ++t) {
      const Nanoseconds time = times[graph.tasks[t].slot];
      const Nanoseconds varying = varying_time(graph.tasks[t], time, placement, cluster);
      for (std::size_t k = 0; k < used; ++k)
        durations[t * used + k] = static_cast<double>(
            (time - varying + runs[k].vary(varying, t, graph.tasks[t].kind)).count());
    }
    compiled.makespans(std::span(durations).first(graph.size() * used), used, steps);
    for (std::size_t k = 0; k < used; ++k) found.emplace_back(static_cast<std::int64_t>(steps[k]));
  }
  return found;
}

}  // namespace pfeife
