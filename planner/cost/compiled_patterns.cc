#include "planner/cost/compiled_patterns.h"

#include <algorithm>

#include "planner/ir/lower.h"

namespace pfeife {
namespace {
constexpr std::size_t kPatterns = 8;
constexpr std::size_t kNodes = std::size_t{1} << 16;  ///< of all that are kept, but for the first
}  // namespace

const CompiledPatterns::Pattern& CompiledPatterns::pattern(const Schedule& compute_only,
                                                           const Placement& placement,
                                                           const StageCosts& costs) {
  StageGraph stages = stage_graph(costs);
  const auto found = std::ranges::find(known_, stages, &Pattern::stages);
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
    return known_.front();
  }
  // Of free queues and delay links, any order of the transfers takes as long.
  DependencyGraph graph =
      dependencies(lower(compute_only, costs, placement), stages, placement, Semantics{});
  CompiledGraph compiled(graph);
  known_.push_front({std::move(stages), std::move(graph.slots), std::move(compiled)});
  const std::size_t nodes = known_.front().graph.compute_nodes();
  while (known_.size() > 1 && (known_.size() > kPatterns || known_.size() * nodes > kNodes))
    known_.pop_back();
  return known_.front();
}

Nanoseconds CompiledPatterns::estimate(const Schedule& compute_only, const Placement& placement,
                                       const StageCosts& costs) {
  if (costs.reductions.empty()) {
    if (!order_) order_.emplace(compute_only, placement);
    return order_->estimate(costs);
  }
  const Pattern& known = pattern(compute_only, placement, costs);
  std::vector<std::int64_t> durations;
  durations.reserve(known.slots.size());
  for (const Nanoseconds duration : slot_durations(known.slots, costs))
    durations.push_back(duration.count());
  return Nanoseconds{known.graph.makespan(durations)};
}

}  // namespace pfeife
