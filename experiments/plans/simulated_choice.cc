#include "experiments/plans/simulated_choice.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "experiments/plans/case_limits.h"
#include "experiments/plans/case_problem.h"
#include "experiments/plans/covering_bound.h"
#include "experiments/plans/message_orders.h"
#include "experiments/plans/simulated_times.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/result/result_engine.h"
#include "planner/schedules/families.h"
#include "planner/search/bound/link_bound.h"
#include "planner/search/choices/shared_links.h"

namespace pfeife {
namespace {

/// Simulates the plans that are asked for, and keeps the traces of the fastest.
class Simulations {
 public:
  Simulations(const CaseInputs& inputs, const Problem& problem, std::size_t workers)
      : inputs_(inputs),
        problem_(problem),
        workers_(workers),
        most_(inputs.config->plan.rule().compared) {}

  std::vector<StepTime> times(std::span<const Priced> plans) {
    std::vector<StepTime> times;
    std::vector<SimulatedStep> steps = simulated_steps(inputs_, problem_, plans, workers_);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      times.push_back({steps[i].alone, step_time(steps[i].trace)});
      keep(plans[i], std::move(steps[i].trace));
    }
    return times;
  }

  /// The trace of a plan if it was among the fastest.
  std::optional<Trace> trace_of(const Priced& plan) const {
    for (const auto& [known, trace] : kept_)
      if (known == plan) return trace;
    return std::nullopt;
  }

 private:
  void keep(const Priced& plan, Trace trace) {
    kept_.emplace_back(plan, std::move(trace));
    std::ranges::stable_sort(kept_, {}, [](const auto& kept) { return step_time(kept.second); });
    if (kept_.size() > most_) kept_.pop_back();
  }

  const CaseInputs& inputs_;
  const Problem& problem_;
  std::size_t workers_, most_;
  std::vector<std::pair<Priced, Trace>> kept_;
};

/// The baselines that might be the case's own plan.
std::vector<Priced> eligible_baselines(const EvaluatedCase& evaluated, const Problem& problem) {
  std::vector<Priced> found;
  for (const Evaluation& baseline : evaluated.baselines) {
    const Activations& activations = baseline.plan.activations;
    const bool by_block = !activations.blocks.empty();
    const Recompute allowed = by_block ? Recompute::Blocks : Recompute::Choose;
    if (activations.recomputes() &&
        (problem.recompute != allowed || activations.except_last != problem.recompute_except_last))
      continue;
    if (!baseline.fits() || problem.recompute == Recompute::Full ||
        (problem.cuts && *problem.cuts != baseline.plan.partition))
      continue;
    if (const ScheduleSpec* const spec = listed_as(baseline.plan.spec, problem.schedules))
      found.push_back(*baseline.choice), found.back().spec = *spec;
  }
  return found;
}

/// The plan among the planned ones: the one that is there already, whether it was made of the same
/// choices or comes to the same, or else a new one.
Evaluation& kept_as_planned(const Priced& plan, const CaseInputs& settled,
                            EvaluatedCase& evaluated) {
  std::vector<Evaluation>& planned = evaluated.planned;
  const auto known = std::ranges::find(planned, std::optional(plan), &Evaluation::choice);
  if (known != planned.end()) return *known;
  Evaluation added = estimated_plan(settled, Origin::Search, kPlanned, plan);
  added.plan.found["candidates"] = std::to_string(evaluated.answer().candidates);
  const auto same = std::ranges::find_if(
      planned, [&](const Evaluation& other) { return runs_alike(other.plan, added.plan); });
  return same == planned.end() ? planned.emplace_back(std::move(added)) : *same;
}

/// The fastest of `timed`, the fastest first, and what the rule takes, or would of those nearly as
/// fast. They are then simulated with all that is asked for.
std::vector<Priced> worth_keeping(std::vector<TimedPlan> timed, const Problem& problem,
                                  const PlanRule& rule) {
  if (timed.empty()) return {};
  std::vector<PlanMerits> figures;
  for (const TimedPlan& plan : timed)
    figures.push_back({plan.time.shared, fullness(plan.peak_memory, problem.memory_limit)});
  const std::size_t taken = taken_plan(figures, rule), near = taken_plan(figures, rule.nearly());
  std::vector<Priced> plans;
  for (std::size_t i = 0; i < timed.size(); ++i)
    if (i < rule.compared || i == taken || i == near) plans.push_back(std::move(timed[i]));
  return plans;
}

/// Nothing where other microbatch sizes or orders of the layers were open, or ranks may share the
/// output layer.
std::optional<Nanoseconds> links_bound(const Problem& problem, const SimulationSettings& simulation,
                                       const Answer& answer) {
  if (std::ranges::any_of(problem.schedules, shares_head)) return std::nullopt;
  const Semantics semantics{simulation.queues, simulation.links, false};
  if (answer.alternatives.empty())
    return shared_links_bound(problem, semantics, answer.bound->linked);
  const Uncertified& open = answer.uncertified;
  if (!open.device_orders || open.microbatch_sizes.size() > 1 || open.layer_orders.size() > 1)
    return std::nullopt;
  return any_devices_links_bound(problem, semantics, answer.bound->linked);
}

/// Nothing if the case simulates nothing, has a given plan, one of reference mode or one made with
/// other figures, or if nothing fits.
void add_simulated_plans(EvaluatedCase& evaluated, std::size_t workers,
                         const std::function<void(double)>& progress) {
  const Request& config = *evaluated.config;
  if (!config.simulate || !config.plan.searched() || config.plan.reference ||
      config.plan_published || !evaluated.planned.front().possible())
    return;
  const CaseInputs settled = evaluated.planned.front().inputs;
  const Problem problem = settled_problem(settled, evaluated.answer().recompute);
  const std::vector<Priced> baselines = eligible_baselines(evaluated, problem);
  std::vector<Priced> asked = baselines;
  for (const auto& [name, plan] : evaluated.handed) asked.push_back(plan);
  Simulations simulations(settled, problem, workers);
  const LinkSimulator simulator{
      [&](std::span<const Priced> plans) { return simulations.times(plans); },
      config.simulation.links, config.simulation.queues};
  SharedLinksOutcome found =
      fastest_with_shared_links(problem, evaluated.pool.take_all(), std::move(asked),
                                {.keep = std::numeric_limits<std::size_t>::max(),
                                 .iterations = config.plan.iterations,
                                 .threads = workers,
                                 .progress = progress},
                                simulator);
  if (found.unfinished) evaluated.pool.leave_unfinished({Unfinished::What::SharedLinks});
  const bool sliced = std::ranges::any_of(problem.schedules,
                                          [](const ScheduleSpec& spec) { return spec.slices > 1; });
  // the links' bound knows devices' limits, not what goes to hosts
  if (found.links_bind && !sliced && !config.plan.offload && evaluated.answer().bound)
    evaluated.pool.set_links_bound(links_bound(problem, config.simulation, evaluated.answer()));
  std::vector<Priced> plans = worth_keeping(std::move(found.plans), problem, config.plan.rule());
  if (chosen_by(config) == SelectBy::P95)  // by which a baseline may be better than these
    plans.insert(plans.end(), baselines.begin(), baselines.end());
  for (const Priced& plan : plans) {
    Evaluation& kept = kept_as_planned(plan, settled, evaluated);
    if (config.simulation.jitter) continue;  // one run knows no percentiles
    if (auto trace = simulations.trace_of(plan)) store_simulated(std::move(*trace), kept);
  }
  std::ranges::stable_sort(evaluated.planned, {},
                           [](const Evaluation& plan) { return step_time(plan.estimated); });
}

/// If no plan has an allowed bubble, there is no plan.
void check_bubble(EvaluatedCase& evaluated, SelectBy by) {
  const PlanRule rule = evaluated.config->plan.rule();
  const Evaluation& nearest = evaluated.planned[evaluated.chosen];
  const double least = merits_by(nearest, compared_by(evaluated.planned, by)).bubble;
  if (rule.allows(least)) return;
  Evaluation none =
      no_plan(nearest.inputs, nearest.origin, kPlanned,
              "no plan was found whose bubble is at most " + fixed(100 * *rule.max_bubble, 1) +
                  " % (plan.max_bubble): the least is " + fixed(100 * least, 1) + " %, of " +
                  name_of(nearest.plan) +
                  "; raise max_bubble, or take more microbatches or stages_per_rank");
  evaluated.planned.insert(evaluated.planned.begin(), std::move(none));
  evaluated.chosen = 0;
}

void choose(EvaluatedCase& evaluated) {
  const Request& config = *evaluated.config;
  const SelectBy by = chosen_by(config);
  evaluated.chosen = select(evaluated.planned, by, config.plan.rule());
  if (config.plan.max_bubble && evaluated.planned.front().possible()) check_bubble(evaluated, by);
  for (Evaluation& plan : evaluated.planned) plan.plan.bound = bound_for(evaluated, plan);
  const bool runs = config.measure || !config.measurement.traces.empty();
  if (runs || !config.plan.searched() || config.plan.reference) return;
  evaluated.less_memory =
      with_less_memory(evaluated.planned, by, config.plan.rule(), evaluated.chosen);
  if (!evaluated.less_memory) return;
  Evaluation& plan = evaluated.planned[*evaluated.less_memory];
  plan.name = kLessMemory;
  plan.plan.bound.reset();  // whose proof is the planned one's
}

}  // namespace

void simulate_cases(std::span<EvaluatedCase> cases, std::size_t workers,
                    const std::function<void(double)>& progress) {
  std::vector<Evaluation*> plans;
  for (EvaluatedCase& evaluated : cases) {
    const auto started = std::chrono::steady_clock::now();
    add_simulated_plans(evaluated, workers, progress);
    evaluated.pool.spend(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
    for (Evaluation& plan : evaluated.planned) plans.push_back(&plan);
    for (Evaluation& plan : evaluated.baselines) plans.push_back(&plan);
  }
  simulate_plans(plans, workers);
  order_messages(cases, workers);
  for (EvaluatedCase& evaluated : cases) choose(evaluated);
}

}  // namespace pfeife
