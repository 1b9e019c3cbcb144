#include "experiments/plans/simulated_times.h"

#include "planner/cost/estimate/estimator.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/parallel.h"
#include "planner/search/price/price.h"
#include "sim/simulator.h"

namespace pfeife {
namespace {

/// A plan on its way through the simulator.
struct Prepared {
  std::shared_ptr<const CostedRows> rows;
  DependencyGraph graph;
  Nanoseconds alone{0};
};

Prepared prepare(const Problem& problem, const Priced& planned,
                 const SimulationSettings& settings) {
  Prepared prepared{planned.rows ? planned.rows : price(problem, planned).rows, {}, {}};
  const auto& [costs, lowered] = *prepared.rows;
  const StageGraph stages = stage_graph(costs);
  const auto alone = estimate(dependencies(lowered, stages, planned.placement, {}), costs,
                              {.launch_overhead = settings.launch_overhead});
  PFEIFE_CHECK(std::holds_alternative<Trace>(alone), "a lowered schedule that cannot run");
  prepared.alone = step_time(std::get<Trace>(alone));
  prepared.graph =
      dependencies(lowered, stages, planned.placement, {settings.queues, settings.links, false});
  return prepared;
}

}  // namespace

std::vector<SimulatedStep> simulated_steps(const CaseInputs& inputs, const Problem& problem,
                                           std::span<const Priced> plans, std::size_t workers) {
  const SimulationSettings& settings = inputs.config->simulation;
  std::vector<Prepared> prepared(plans.size());
  parallel_for(plans.size(), workers,
               [&](std::size_t i) { prepared[i] = prepare(problem, plans[i], settings); });
  std::vector<SimulationJob> jobs;
  for (std::size_t i = 0; i < plans.size(); ++i)
    jobs.push_back({.name = inputs.config->name + ", a candidate",
                    .graph = &prepared[i].graph,
                    .costs = &prepared[i].rows->costs,
                    .placement = &plans[i].placement,
                    .cluster = inputs.cluster,
                    .launch_overhead = settings.launch_overhead,
                    .jitter = {},
                    .trace = true});
  std::vector<SimulationResult> results = simulate_all(jobs, {.workers = workers, .progress = {}});
  std::vector<SimulatedStep> steps;
  for (std::size_t i = 0; i < results.size(); ++i) {
    PFEIFE_CHECK(!results[i].deadlock, jobs[i].name, ": a lowered schedule that cannot run");
    steps.push_back({prepared[i].alone, *std::move(results[i].trace)});
  }
  return steps;
}

}  // namespace pfeife
