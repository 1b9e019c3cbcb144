#include "experiments/evaluate.h"

#include <tuple>
#include <variant>

#include "planner/cost/estimator.h"
#include "planner/cost/jittered.h"
#include "planner/cost/memory.h"
#include "planner/cost/stage_costs.h"
#include "sim/simulator.h"

namespace pfeife {
namespace {

constexpr Semantics kEstimate{Queues::None, Links::Delay, false};

/// Estimator and lowering agree that a schedule made by this program can run; a given one was
/// validated before.
[[noreturn]] void throw_deadlock(const Evaluation& plan, const char* engine) {
  throw RuntimeFault("case " + plan.config->name + ", plan " + plan.candidate.plan + ": the " +
                     engine + " finds a deadlock in a schedule that was taken as valid");
}

DependencyGraph graph_of(const Evaluation& plan, const Semantics& semantics) {
  return dependencies(plan.candidate.schedule, stage_graph(plan.costs), plan.candidate.placement,
                      semantics);
}

Nanoseconds chosen_time(const Evaluation& plan, SelectBy select_by) {
  if (select_by == SelectBy::P95 && p95(plan)) return *p95(plan);
  if (select_by != SelectBy::Estimate && plan.simulated) return step_time(*plan.simulated);
  return step_time(plan.estimated);
}

Jitter jitter_of(const JitterSettings& settings) {
  return {.cv = settings.cv, .seed = settings.seed, .drift = settings.drift};
}

std::optional<Spread> spread(const std::vector<Nanoseconds>& steps) {
  if (steps.empty()) return std::nullopt;
  return Spread{quantile(steps, 0.05), quantile(steps, 0.5), quantile(steps, 0.95)};
}

void store(const SimulationResult& result, const DependencyGraph& graph, Evaluation& plan) {
  if (result.deadlock) throw_deadlock(plan, "simulator");
  plan.simulated = result.trace;
  add_memory(*plan.simulated, graph, plan.candidate.schedule, plan.costs, plan.candidate.placement);
  plan.simulated_spread = spread(result.repetitions);
}

}  // namespace

bool Evaluation::fits() const {
  for (std::size_t rank = 0; rank < peak_memory.size(); ++rank)
    if (peak_memory[rank] > memory_limit[rank]) return false;
  return possible();
}

Evaluation estimate_candidate(const CaseConfig& config, const Layers& layers,
                              const Cluster& cluster, Candidate candidate) {
  Evaluation plan{&config, &layers, &cluster, std::move(candidate)};
  plan.memory_limit = memory_limits(config, cluster);
  if (!plan.possible()) return plan;
  const Placement& placement = plan.candidate.placement;
  plan.memory_limit = memory_limits(config, cluster, placement.device_of_rank);
  plan.costs =
      stage_costs(layers, plan.candidate.partition, placement, cluster, plan.candidate.recompute);
  plan.peak_memory = peak_memory(plan.candidate.schedule, plan.costs, placement);
  const DependencyGraph graph = graph_of(plan, kEstimate);
  auto outcome = estimate(graph, plan.costs);
  if (std::holds_alternative<Deadlock>(outcome)) throw_deadlock(plan, "estimator");
  plan.estimated = std::get<Trace>(std::move(outcome));
  add_memory(plan.estimated, graph, plan.candidate.schedule, plan.costs, placement);
  if (const auto& jitter = config.simulation.jitter)
    plan.estimated_spread = spread(jittered_estimates(graph, plan.costs, placement, cluster,
                                                      jitter_of(*jitter), jitter->repetitions));
  return plan;
}

DependencyGraph executed_graph(const Evaluation& plan) { return graph_of(plan, kEstimate); }

void simulate_plans(std::span<Evaluation* const> plans, std::size_t workers) {
  std::vector<Evaluation*> chosen;
  for (Evaluation* plan : plans)
    if (plan->possible() && plan->config->simulate) chosen.push_back(plan);
  if (chosen.empty()) return;
  std::vector<DependencyGraph> graphs;
  graphs.reserve(chosen.size());
  std::vector<SimulationJob> jobs;
  for (Evaluation* plan : chosen) {
    const SimulationSettings& settings = plan->config->simulation;
    graphs.push_back(graph_of(*plan, {settings.queues, settings.links, false}));
    SimulationJob job{.name = plan->config->name + ", " + plan->candidate.plan,
                      .graph = &graphs.back(),
                      .costs = &plan->costs,
                      .placement = &plan->candidate.placement,
                      .cluster = plan->cluster,
                      .launch_overhead = settings.launch_overhead,
                      .jitter = {},
                      .repetitions = 0,
                      .trace = true};
    if (settings.jitter) {
      job.jitter = jitter_of(*settings.jitter);
      job.repetitions = settings.jitter->repetitions;
    }
    jobs.push_back(job);
  }
  const std::vector<SimulationResult> results =
      simulate_all(jobs, {.workers = workers, .progress = {}});
  for (std::size_t i = 0; i < chosen.size(); ++i) store(results[i], graphs[i], *chosen[i]);
}

std::optional<Nanoseconds> p95(const Evaluation& plan) {
  if (plan.simulated_spread) return plan.simulated_spread->p95;
  if (plan.estimated_spread) return plan.estimated_spread->p95;
  return std::nullopt;
}

std::size_t select(std::span<const Evaluation> planned, SelectBy select_by) {
  std::size_t best = 0;
  const auto key = [&](const Evaluation& plan) {
    return std::tuple(!plan.fits(), chosen_time(plan, select_by));
  };
  for (std::size_t i = 1; i < planned.size(); ++i)
    if (key(planned[i]) < key(planned[best])) best = i;
  return best;
}

}  // namespace pfeife
