#include "experiments/plans/evaluate.h"

#include <algorithm>
#include <functional>
#include <variant>

#include "experiments/plans/case_limits.h"
#include "planner/cost/allocator/played_ranks.h"
#include "planner/cost/estimate/jittered.h"
#include "planner/cost/estimate/link_load.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/estimate/priced_plan.h"
#include "planner/ir/basics/error.h"
#include "planner/search/search.h"
#include "sim/simulator.h"

namespace pfeife {
namespace {

/// Estimator and lowering agree that a schedule made by this program can run; a given one was
/// validated before.
[[noreturn]] void throw_deadlock(const Evaluation& plan, const char* engine) {
  throw RuntimeFault("case " + plan.inputs.config->name + ", plan " + plan.name + ": the " +
                     engine + " finds a deadlock in a schedule that was taken as valid");
}

Jitter jitter_of(const JitterSettings& settings) {
  return {.cv = settings.cv, .seed = settings.seed, .drift = settings.drift};
}

/// Repetitions that do not vary are one step, which is every percentile.
std::optional<Spread> spread(const std::vector<Nanoseconds>& steps) {
  if (steps.empty()) return std::nullopt;
  return Spread{quantile(steps, 0.05), quantile(steps, 0.5), quantile(steps, 0.95)};
}

/// For plan.yaml.
const char* words(Origin origin) {
  switch (origin) {
    case Origin::Search:
      return "search";
    case Origin::Reference:
      return "reference mode";
    case Origin::PlanFile:
      return "given plan";
    case Origin::ScheduleFile:
      return "given schedule and cuts";
    case Origin::Baseline:
      return "baseline";
  }
  return "";
}

/// What the plan is for, in the words of the request.
void name_inputs(const Request& config, Origin origin, Plan& plan) {
  plan.model = file_name(config, "model", config.model.file);
  plan.cluster = file_name(config, "cluster", config.cluster);
  plan.training = {config.training.precision, config.training.optimizer,
                   plan.training.microbatch_size, config.training.mode};
  if (config.training.clip_norm > 0)
    plan.clip_norm = config.training.clip_norm;  // else as a given plan has it
  plan.found = {{"by", words(origin)}, {"program", "pfeife " PFEIFE_VERSION}};
}

/// What the simulator runs of a plan.
DependencyGraph simulated_graph(const Evaluation& plan) {
  const SimulationSettings& settings = plan.inputs.config->simulation;
  return dependencies(plan.plan.schedule, stage_graph(plan.costs), plan.plan.placement,
                      {settings.queues, settings.links, false});
}

}  // namespace

const Trace* Evaluation::trace_of(TraceSource engine) const {
  if (!possible()) return nullptr;
  if (engine == TraceSource::Estimated) return &estimated;
  if (engine == TraceSource::Simulated) return simulated ? &*simulated : nullptr;
  return engine == TraceSource::Measured && measurement ? &measurement->trace : nullptr;
}

using PricedOutcome = std::variant<PricedPlan, Deadlock>;

/// The evaluation of `plan` once `price` has made all that follows from its choices.
static Evaluation estimated(const CaseInputs& inputs, Origin origin, std::string name, Plan plan,
                            const std::function<PricedOutcome(Plan)>& price) {
  Evaluation evaluation{.inputs = inputs, .origin = origin};
  evaluation.name = std::move(name);
  const Cluster& cluster = *inputs.cluster;
  name_inputs(*inputs.config, origin, plan);
  evaluation.need.limit = memory_limits(*inputs.config, cluster, plan.placement.device_of_rank);
  PricedOutcome priced = price(std::move(plan));
  if (std::holds_alternative<Deadlock>(priced)) throw_deadlock(evaluation, "estimator");
  static_cast<PricedPlan&>(evaluation) = std::move(std::get<PricedPlan>(priced));
  evaluation.need.allocated = evaluation.plan.peak_memory;
  evaluation.need.host = memory_of_hosts(evaluation.plan.schedule, evaluation.costs,
                                         evaluation.plan.placement, cluster);
  evaluation.need.host_limit = cluster.host_memory;
  if (const auto allocator = allocator_of(*inputs.config, cluster))
    evaluation.need.reserved = reserved_memory(evaluation.plan, *inputs.layers, *allocator);
  if (const auto& jitter = inputs.config->simulation.jitter)
    evaluation.estimated_spread = spread(jittered_estimates(
        executed_graph(evaluation.plan, evaluation.costs), evaluation.costs,
        evaluation.plan.placement, cluster, jitter_of(*jitter), jitter->repetitions));
  return evaluation;
}

Evaluation estimated_plan(const CaseInputs& inputs, Origin origin, std::string name, Plan plan,
                          bool lowered) {
  return estimated(inputs, origin, std::move(name), std::move(plan), [&](Plan choices) {
    return priced_plan(std::move(choices), lowered, *inputs.layers, *inputs.cluster);
  });
}

Evaluation estimated_plan(const CaseInputs& inputs, Origin origin, std::string name,
                          const Priced& planned) {
  Evaluation evaluation =
      estimated(inputs, origin, std::move(name), plan_of(planned), [&](Plan choices) {
        return planned.rows
                   ? priced_plan(std::move(choices), *planned.rows, *inputs.layers, *inputs.cluster)
                   : priced_plan(std::move(choices), false, *inputs.layers, *inputs.cluster);
      });
  evaluation.choice = planned;
  return evaluation;
}

Evaluation no_plan(const CaseInputs& inputs, Origin origin, std::string name, std::string reason,
                   const ScheduleSpec& spec) {
  Evaluation none{.inputs = inputs, .origin = origin};
  none.name = std::move(name);
  none.reason = std::move(reason);
  none.plan.spec = spec;
  none.need.limit = memory_limits(*inputs.config, *inputs.cluster);
  return none;
}

void store_simulated(Trace trace, Evaluation& plan) {
  const DependencyGraph graph = simulated_graph(plan);
  add_memory(trace, graph, plan.plan.schedule, plan.costs, plan.plan.placement);
  if (graph.semantics.links == Links::Shared)
    add_link_loads(trace, plan.costs, plan.plan.placement, *plan.inputs.cluster);
  plan.simulated = std::move(trace);
}

void simulate_plans(std::span<Evaluation* const> plans, std::size_t workers) {
  std::vector<Evaluation*> chosen;
  for (Evaluation* plan : plans)
    if (plan->possible() && plan->inputs.config->simulate && !plan->simulated)
      chosen.push_back(plan);
  if (chosen.empty()) return;
  std::vector<DependencyGraph> graphs;
  graphs.reserve(chosen.size());
  std::vector<SimulationJob> jobs;
  for (Evaluation* plan : chosen) {
    const SimulationSettings& settings = plan->inputs.config->simulation;
    graphs.push_back(simulated_graph(*plan));
    SimulationJob job{.name = plan->inputs.config->name + ", " + plan->name,
                      .graph = &graphs.back(),
                      .costs = &plan->costs,
                      .placement = &plan->plan.placement,
                      .cluster = plan->inputs.cluster,
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
  std::vector<SimulationResult> results = simulate_all(jobs, {.workers = workers, .progress = {}});
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (results[i].deadlock) throw_deadlock(*chosen[i], "simulator");
    std::vector<Nanoseconds> steps = std::move(results[i].repetitions);
    if (jobs[i].repetitions > 0 && steps.empty()) steps = {step_time(*results[i].trace)};
    store_simulated(std::move(*results[i].trace), *chosen[i]);
    chosen[i]->simulated_spread = spread(steps);
  }
}

std::optional<Nanoseconds> p95(const Evaluation& plan) {
  if (plan.simulated_spread) return plan.simulated_spread->p95;
  if (plan.estimated_spread) return plan.estimated_spread->p95;
  return std::nullopt;
}

SelectBy compared_by(std::span<const Evaluation> planned, SelectBy select_by) {
  const auto lacks_p95 = [](const Evaluation& plan) { return !p95(plan); };
  const auto lacks_simulation = [](const Evaluation& plan) { return !plan.simulated; };
  if (select_by == SelectBy::P95 && std::ranges::any_of(planned, lacks_p95))
    select_by = SelectBy::Simulate;
  if (select_by == SelectBy::Simulate && std::ranges::any_of(planned, lacks_simulation))
    select_by = SelectBy::Estimate;
  return select_by;
}

Nanoseconds time_by(const Evaluation& plan, SelectBy by) {
  if (by == SelectBy::P95) return p95(plan).value();
  return step_time(by == SelectBy::Simulate ? plan.simulated.value() : plan.estimated);
}

PlanMerits merits_by(const Evaluation& plan, SelectBy by) {
  const bool simulated = by != SelectBy::Estimate && plan.simulated;
  return {.time = time_by(plan, by),
          .fullness = plan.need.fullness(),
          .bubble = bubble(simulated ? *plan.simulated : plan.estimated)};
}

std::size_t select(std::span<const Evaluation> planned, SelectBy select_by, const PlanRule& rule) {
  if (planned.size() == 1) return 0;
  const SelectBy by = compared_by(planned, select_by);
  std::vector<PlanMerits> plans;
  for (const Evaluation& plan : planned) plans.push_back(merits_by(plan, by));
  return taken_plan(plans, rule);
}

std::optional<std::size_t> with_less_memory(std::span<const Evaluation> planned, SelectBy select_by,
                                            const PlanRule& rule, std::size_t chosen) {
  const auto full = [](const Evaluation& plan) { return plan.need.fullness(); };
  const std::size_t found = select(planned, select_by, rule.nearly());
  if (found == chosen) return std::nullopt;
  const bool saves = full(planned[found]) <= (1 - kMuchLessMemory) * full(planned[chosen]);
  return planned[chosen].fits() && saves ? std::optional(found) : std::nullopt;
}

}  // namespace pfeife
