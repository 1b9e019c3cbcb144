#include "experiments/plans/simulated_choice.h"

#include <algorithm>
#include <chrono>

#include "experiments/plans/case_limits.h"
#include "experiments/plans/message_orders.h"
#include "experiments/plans/searched_plans.h"
#include "planner/cost/estimate/estimator.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/parallel.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "planner/search/bound/link_bound.h"
#include "planner/search/choices/shared_links.h"
#include "sim/simulator.h"

namespace pfeife {
namespace {

constexpr std::size_t kKept = 5;  ///< plans, which are then simulated with all that is asked for

/// A plan on its way through the simulator.
struct Simulated {
  StageCosts costs;
  Placement placement;
  DependencyGraph graph;
  Nanoseconds alone{0};
};

Simulated prepare(const CaseInputs& inputs, const PlannedSchedule& planned) {
  const SimulationSettings& settings = inputs.config->simulation;
  const Plan plan = plan_of(planned, devices_of(*inputs.config));
  Simulated one;
  one.placement = plan.placement;
  one.costs = stage_costs(*inputs.layers, plan, *inputs.cluster);
  const Schedule lowered = lower(plan.schedule, one.costs, plan.placement);
  const StageGraph stages = stage_graph(one.costs);
  const auto alone = estimate(dependencies(lowered, stages, plan.placement, {}), one.costs,
                              {.launch_overhead = settings.launch_overhead});
  PFEIFE_CHECK(std::holds_alternative<Trace>(alone), "a lowered schedule that cannot run");
  one.alone = step_time(std::get<Trace>(alone));
  one.graph =
      dependencies(lowered, stages, plan.placement, {settings.queues, settings.links, false});
  return one;
}

std::vector<StepTime> step_times(const CaseInputs& inputs, std::span<const PlannedSchedule> plans,
                                 std::size_t workers) {
  std::vector<Simulated> prepared(plans.size());
  parallel_for(plans.size(), workers,
               [&](std::size_t i) { prepared[i] = prepare(inputs, plans[i]); });
  std::vector<SimulationJob> jobs;
  for (const Simulated& one : prepared)
    jobs.push_back({.name = inputs.config->name + ", a candidate",
                    .graph = &one.graph,
                    .costs = &one.costs,
                    .placement = &one.placement,
                    .cluster = inputs.cluster,
                    .launch_overhead = inputs.config->simulation.launch_overhead,
                    .jitter = {}});
  const std::vector<SimulationResult> results =
      simulate_all(jobs, {.workers = workers, .progress = {}});
  std::vector<StepTime> times;
  for (std::size_t i = 0; i < results.size(); ++i) {
    PFEIFE_CHECK(!results[i].deadlock, jobs[i].name, ": a lowered schedule that cannot run");
    times.push_back({prepared[i].alone, results[i].step_time});
  }
  return times;
}

bool is_compute(const Cell& cell) {
  const auto* action = std::get_if<Action>(&cell);
  return std::holds_alternative<Overlap>(cell) || (action != nullptr && is_compute(action->op));
}

/// The choices that make the plan.
PlannedSchedule planned_schedule(const Evaluation& evaluation) {
  const Plan& plan = evaluation.plan;
  PlannedSchedule planned{.spec = plan.spec,
                          .partition = plan.partition,
                          .estimate = plan.estimate,
                          .peak_memory = plan.peak_memory,
                          .recompute = {}};
  if (std::ranges::find(plan.recompute, true) != plan.recompute.end())
    planned.recompute = plan.recompute;
  planned.blocks = plan.blocks;
  planned.recompute_except_last = plan.recompute_except_last;
  if (family(plan.spec.family).built_for_costs) {
    planned.order = plan.schedule;
    for (std::vector<Cell>& row : planned.order->rows)
      std::erase_if(row, [](const Cell& cell) { return !is_compute(cell); });
  }
  return planned;
}

/// The searched schedule that is the baseline's, whose knobs may be written otherwise; nullptr:
/// none.
const ScheduleSpec* searched_as(const ScheduleSpec& baseline, const Problem& problem) {
  for (const ScheduleSpec& spec : problem.schedules)
    if (spec == baseline ||
        (spec.family == baseline.family && spec.stages_per_rank == baseline.stages_per_rank &&
         !family(spec.family).built_for_costs && generate(spec) == generate(baseline)))
      return &spec;
  return nullptr;
}

/// The baselines that might be the case's own plan.
std::vector<PlannedSchedule> eligible_baselines(const EvaluatedCase& evaluated,
                                                const Problem& problem) {
  std::vector<PlannedSchedule> found;
  for (const Evaluation& baseline : evaluated.baselines) {
    const Plan& plan = baseline.plan;
    const bool by_stage = std::ranges::find(plan.recompute, true) != plan.recompute.end();
    if ((!plan.blocks.empty() && problem.recompute != Recompute::Blocks) ||
        (by_stage && problem.recompute != Recompute::Choose))
      continue;
    if ((!plan.blocks.empty() || by_stage) &&
        plan.recompute_except_last != problem.recompute_except_last)
      continue;
    if (!baseline.fits() || problem.recompute == Recompute::Full ||
        (problem.cuts && *problem.cuts != baseline.plan.partition))
      continue;
    if (const ScheduleSpec* const spec = searched_as(baseline.plan.spec, problem))
      found.push_back(planned_schedule(baseline)), found.back().spec = *spec;
  }
  return found;
}

/// Nothing if the case simulates nothing, has a given plan, one of reference mode or one made with
/// other figures, or if nothing fits.
void add_simulated_plans(EvaluatedCase& evaluated, std::size_t workers) {
  const CaseConfig& config = *evaluated.config;
  if (!config.simulate || config.plan.source != PlanSettings::Source::Search ||
      config.plan.reference || config.plan_published || !evaluated.planned.front().possible())
    return;
  const CaseInputs settled = evaluated.planned.front().inputs;
  const Problem problem = settled_problem(settled, evaluated.search.recompute);
  const std::vector<PlannedSchedule> baselines = eligible_baselines(evaluated, problem);
  const LinkSimulator simulator{
      [&](std::span<const PlannedSchedule> plans) { return step_times(settled, plans, workers); },
      config.simulation.links, config.simulation.queues};
  SharedLinksOutcome found = fastest_with_shared_links(
      problem, std::move(evaluated.search.known), baselines,
      {.keep = kKept, .iterations = config.plan.iterations, .threads = workers}, simulator);
  if (found.unfinished)
    evaluated.search.unfinished.push_back(
        "links bind, and the budget ended before all changes of the best plans were simulated; "
        "a larger plan.iterations goes on");
  if (found.links_bind && evaluated.search.bound && evaluated.search.alternatives.empty())
    evaluated.search.links_bound =
        shared_links_bound(problem, {config.simulation.queues, config.simulation.links, false},
                           evaluated.search.bound->linked);
  std::vector<PlannedSchedule> plans;
  for (TimedPlan& one : found.plans) plans.push_back(std::move(one.plan));
  if (config.select_by == SelectBy::P95)  // by which a baseline may be better than these
    plans.insert(plans.end(), baselines.begin(), baselines.end());
  for (const PlannedSchedule& plan : plans) {
    Evaluation added = estimated_plan(settled, Origin::Search, kPlanned,
                                      plan_of(plan, devices_of(*settled.config)), false);
    added.plan.bound = evaluated.search.bound;
    added.plan.found["candidates"] = std::to_string(evaluated.search.candidates);
    const auto same = [&](const Evaluation& other) {
      return other.plan.schedule == added.plan.schedule &&
             other.plan.partition == added.plan.partition &&
             other.plan.recompute == added.plan.recompute &&
             other.plan.blocks == added.plan.blocks &&
             other.plan.recompute_except_last == added.plan.recompute_except_last;
    };
    if (std::ranges::none_of(evaluated.planned, same))
      evaluated.planned.push_back(std::move(added));
  }
  std::ranges::stable_sort(evaluated.planned, {},
                           [](const Evaluation& plan) { return step_time(plan.estimated); });
}

}  // namespace

void simulate_cases(std::span<EvaluatedCase> cases, std::size_t workers) {
  std::vector<Evaluation*> plans;
  for (EvaluatedCase& evaluated : cases) {
    const auto started = std::chrono::steady_clock::now();
    add_simulated_plans(evaluated, workers);
    evaluated.search.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    for (Evaluation& plan : evaluated.planned) plans.push_back(&plan);
    for (Evaluation& plan : evaluated.baselines) plans.push_back(&plan);
  }
  simulate_plans(plans, workers);
  order_messages(cases, workers);
  for (EvaluatedCase& evaluated : cases)
    evaluated.chosen = select(evaluated.planned, evaluated.config->select_by);
}

}  // namespace pfeife
