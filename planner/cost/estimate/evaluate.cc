#include "planner/cost/estimate/evaluate.h"

#include "planner/cost/estimate/estimator.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/stages/sliced_stage_costs.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/cost/stages/word_shares.h"
#include "planner/ir/schedule/lower.h"

namespace pfeife {

Prices evaluate(const SummedLayers& sums, const Cluster& cluster, const Schedule& compute_only,
                const Placement& placement, const Partition& partition, MemoryRule rule,
                const Activations& activations, StepNorm norm, SliceLengths slice_lengths) {
  const std::optional<Layers> divided = divided_layers(sums.layers(), compute_only);
  StageCosts costs = divided
                         ? stage_costs(*divided, partition, placement, cluster, activations, norm)
                         : stage_costs(sums, partition, placement, cluster, activations, norm);
  if (divided) add_word_shares(costs, *divided->words, compute_only);
  if (const std::size_t slices = slice_count(compute_only); slices > 1)
    costs = sliced_stage_costs(std::move(costs), slices, slice_lengths, sums.layers(), partition,
                               placement, cluster, activations);
  Schedule lowered = lower(compute_only, costs, placement);
  Prices plan = evaluate_lowered(std::move(costs), std::move(lowered), placement);
  if (rule == MemoryRule::Reference)
    plan.peak_memory = reference_peak_memory(plan.lowered, plan.costs, placement,
                                             largest_temporaries(sums.layers(), partition));
  return plan;
}

Prices received_late(Prices prices, const Placement& placement) {
  prices.lowered = with_late_receives(prices.lowered, stage_graph(prices.costs), placement);
  prices.peak_memory = peak_memory(prices.lowered, prices.costs, placement);
  prices.receives = Receives::AtNeed;
  return prices;
}

std::vector<Bytes> least_peak_memory(const Prices& prices, const Placement& placement) {
  return peak_memory(with_receives_at_need(prices.lowered), prices.costs, placement);
}

Prices evaluate_lowered(StageCosts costs, Schedule lowered, const Placement& placement) {
  Prices plan{.costs = std::move(costs), .lowered = std::move(lowered)};
  const DependencyGraph graph =
      dependencies(plan.lowered, stage_graph(plan.costs), placement, Semantics{});
  const std::vector<Nanoseconds> durations = slot_durations(graph.slots, plan.costs);
  std::vector<std::int64_t> counts;
  counts.reserve(durations.size());
  for (const Nanoseconds duration : durations) counts.push_back(duration.count());
  plan.estimate = Nanoseconds{CompiledGraph(graph).makespan(counts)};
  plan.peak_memory = peak_memory(plan.lowered, plan.costs, placement);
  return plan;
}

}  // namespace pfeife
