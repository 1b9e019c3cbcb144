#include "planner/search/orders/grouped_times.h"

#include <numeric>

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/stages/microbatch_stage_costs.h"
#include "planner/ir/basics/error.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

Layers with_equal_microbatches(Layers layers) {
  PFEIFE_CHECK(layers.sequence && layers.sequence->tokens > 0, "unknown tokens");
  layers.microbatches.clear();
  return layers;
}

}  // namespace

GroupedTimes::GroupedTimes(const Layers& layers, const Cluster& cluster, const Choice& choice,
                           StepNorm norm)
    : layers_(with_equal_microbatches(layers)),
      cluster_(cluster),
      partition_(choice.partition),
      placement_(choice.placement),
      graph_([&] {
        Prices prices =
            evaluate(layers_, cluster, compute_only(choice), placement_, partition_,
                     MemoryRule::Lifetimes, choice.activations, norm, choice.spec.slice_lengths);
        any_ = std::move(prices.costs);
        // Every microbatch a kind of its own, so that each has durations of its own.
        StageGraph distinct = stage_graph(any_);
        distinct.kind_of.resize(choice.spec.microbatches);
        std::iota(distinct.kind_of.begin(), distinct.kind_of.end(), 0U);
        const DependencyGraph graph =
            dependencies(prices.lowered, distinct, placement_, Semantics{});
        slots_ = graph.slots;
        return CompiledGraph(graph);
      }()) {}

std::int64_t GroupedTimes::time(const DocumentLengths& grouping) {
  layers_.microbatches =
      scales_of_documents(grouping, layers_.sequence->tokens, layers_.microbatch_size);
  const StageCosts costs = microbatch_stage_costs(any_, layers_, partition_, placement_, cluster_);
  std::vector<std::int64_t> durations;
  for (const Nanoseconds duration : slot_durations(slots_, costs))
    durations.push_back(duration.count());
  return graph_.makespan(durations);
}

}  // namespace pfeife
