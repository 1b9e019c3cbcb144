#include "experiments/plans/faster_links.h"

#include <deque>

#include "planner/cost/estimate/link_load.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/basics/error.h"
#include "sim/simulator.h"

namespace pfeife {
namespace {

constexpr double kInstant = 1e9;  ///< times as fast: no message takes a nanosecond

/// A plan on a network of its own; what a simulation borrows.
struct Variant {
  const Evaluation* plan;
  Cluster cluster;
  StageCosts costs;
  DependencyGraph graph;
};

Variant variant(const Evaluation& plan, double faster, Links links) {
  Variant varied{.plan = &plan,
                 .cluster = with_faster_links(*plan.inputs.cluster, faster),
                 .costs = {},
                 .graph = {}};
  varied.costs = stage_costs(*plan.inputs.layers, plan.plan, varied.cluster);
  varied.graph = dependencies(plan.plan.schedule, stage_graph(varied.costs), plan.plan.placement,
                              {plan.inputs.config->simulation.queues, links, false});
  return varied;
}

SimulationJob job_of(const Variant& variant) {
  return {.name = variant.plan->inputs.config->name + ", other links",
          .graph = &variant.graph,
          .costs = &variant.costs,
          .placement = &variant.plan->plan.placement,
          .cluster = &variant.cluster,
          .launch_overhead = variant.plan->inputs.config->simulation.launch_overhead,
          .jitter = {}};
}

}  // namespace

void simulate_faster_links(std::span<EvaluatedCase> cases, std::size_t workers) {
  std::vector<EvaluatedCase*> asked;
  std::deque<Variant> variants;
  for (EvaluatedCase& evaluated : cases) {
    const Evaluation& plan = evaluated.planned[evaluated.chosen];
    if (!plan.simulated || plan.simulated->links.empty()) continue;
    asked.push_back(&evaluated);
    variants.push_back(variant(plan, 1, Links::Delay));
    variants.push_back(variant(plan, 2, Links::Shared));
    variants.push_back(variant(plan, kInstant, Links::Delay));
  }
  std::vector<SimulationJob> jobs;
  for (const Variant& variant : variants) jobs.push_back(job_of(variant));
  if (jobs.empty()) return;
  const std::vector<SimulationResult> results =
      simulate_all(jobs, {.workers = workers, .progress = {}});
  for (std::size_t i = 0; i < results.size(); ++i)
    PFEIFE_CHECK(!results[i].deadlock, jobs[i].name, ": a lowered schedule that cannot run");
  for (std::size_t c = 0; c < asked.size(); ++c)
    asked[c]->faster_links =
        FasterLinks{.now = step_time(*asked[c]->planned[asked[c]->chosen].simulated),
                    .unshared = results[3 * c].step_time,
                    .twice = results[3 * c + 1].step_time,
                    .instant = results[3 * c + 2].step_time};
}

}  // namespace pfeife
