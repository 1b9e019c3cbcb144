#include "experiments/plans/case_record.h"

#include <algorithm>

#include "experiments/plans/covering_bound.h"
#include "experiments/plans/plan_figures.h"
#include "experiments/plans/reasons.h"
#include "planner/cost/allocator/played_ranks.h"
#include "planner/cost/estimate/link_load.h"
#include "planner/cost/estimate/priced_plan.h"
#include "planner/cost/estimate/slow_ranks.h"
#include "planner/cost/stages/hidden_communication.h"
#include "planner/io/experiment/experiment_config.h"
#include "planner/ir/model/layer_title.h"
#include "planner/ir/result/result_engine.h"
#include "planner/search/orders/microbatch_permutation.h"

namespace pfeife {
namespace {

/// `links_bound`: of the simulation, where the search has one. Gaps say how good a search was, so
/// that baselines have none.
void add_bound(const CoveringBound& bound, const std::optional<Nanoseconds>& links_bound,
               ResultRow& row) {
  row.lower_bound = bound.time, row.bound_class = bound.of;
  if (bound.time.count() <= 0 || !is_own(row)) return;
  const auto gap = [](Nanoseconds time, Nanoseconds over) {
    return static_cast<double>((time - over).count()) / static_cast<double>(over.count());
  };
  row.gap = gap(*row.estimate, bound.time);
  if (row.simulate)
    row.simulate_gap = gap(*row.simulate, std::max(bound.time, links_bound.value_or(bound.time)));
}

/// "microbatches=0 1 3 2": the order in which microbatches that differ go into the pipeline, unless
/// it is the one given.
std::string order_text(const Evaluation& plan) {
  constexpr std::size_t kMostShown = 16;
  if (plan.inputs.layers == nullptr || plan.inputs.layers->microbatches.empty()) return "";
  const MicrobatchOrder order = forward_order(plan.plan.schedule);
  if (std::ranges::is_sorted(order)) return "";
  if (order.size() > kMostShown) return "microbatches=reordered";
  std::string text;
  for (const std::uint32_t m : order) text += (text.empty() ? "" : " ") + std::to_string(m);
  return "microbatches=" + text;
}

/// With what did not come from the search, which everything that shows a plan says.
std::string knobs_of(const Evaluation& plan) {
  const std::string order = order_text(plan);
  std::string text = knobs(plan.plan);
  if (!order.empty()) text += (text.empty() ? "" : ", ") + order;
  const bool given = plan.origin == Origin::PlanFile || plan.origin == Origin::ScheduleFile;
  if (!given && plan.origin != Origin::Reference) return text;
  const std::string mark = given ? "search=none" : "search=reference";
  return text.empty() ? mark : mark + ", " + text;  // in front: the ends of long names are cut
}

std::optional<MeasuredRun> measured_run(const Evaluation& plan) {
  constexpr std::size_t kShownActions = 5;
  if (!plan.measure_failure.empty()) return MeasuredRun{.failure = plan.measure_failure};
  if (!plan.measurement) return std::nullopt;
  const Measurement& measurement = *plan.measurement;
  MeasuredRun run;
  for (const MeasuredStep& step : measurement.steps) run.steps += step.counts ? 1 : 0;
  run.others = plan.others;
  run.anew = plan.anew;
  run.p5 = measurement.quantile(0.05);
  run.p95 = measurement.quantile(0.95);
  run.rounds = measurement.round_medians();
  if (const MeasurementSettings& asked = plan.inputs.config->measurement; asked.rounds > 1)
    run.interval_goal = asked.interval;
  run.peak_memory = measurement.peak_memory;
  run.furthest = furthest_actions(plan.predicted(), measurement.durations, kShownActions);
  return run;
}

std::vector<StageCompute> stages_of(const Evaluation& plan) {
  std::vector<StageCompute> stages;
  for (std::size_t s = 0; s < plan.costs.stages.size(); ++s) {
    const StageCost& cost = plan.costs.stages[s];
    stages.push_back({plan.plan.placement.rank_of_stage[s], cost.forward,
                      cost.backward_input + cost.backward_weight});
  }
  return stages;
}

/// [cut] The layer that it lies after.
std::vector<std::string> cut_names(const Evaluation& plan) {
  if (plan.inputs.layers == nullptr) return plan.plan.cut_modules;
  std::vector<std::string> names;
  for (const std::int32_t cut : plan.plan.partition.cuts)
    names.push_back(layer_title(plan.inputs.layers->layers.at(static_cast<std::size_t>(cut))));
  return names;
}

/// The chosen plan, the baselines, and the plan with less memory, if there is one.
std::vector<const Evaluation*> plans_of(const EvaluatedCase& evaluated) {
  std::vector<const Evaluation*> plans{&evaluated.planned[evaluated.chosen]};
  for (const Evaluation& baseline : evaluated.baselines) plans.push_back(&baseline);
  if (evaluated.less_memory) plans.push_back(&evaluated.planned[*evaluated.less_memory]);
  return plans;
}

/// `engine`: by which the case's plans are compared.
PlanRecord plan_record(const Evaluation& plan, const EvaluatedCase& evaluated, TraceSource engine) {
  PlanRecord record;
  record.row = row_of(plan);
  record.reason = plan.reason;
  record.need = plan.need;
  if (!plan.possible()) return record;
  const Trace* const trace = plan.trace_of(engine);
  record.row.samples_per_s = samples_per_second(record.row, engine);
  record.figures = figures_of(plan, evaluated, trace);
  if (const auto& spread = plan.simulated_spread) {
    record.simulate_p5 = spread->p5;
    record.simulate_median = spread->median;
  }
  if (trace != nullptr) {
    record.row.bubble = bubble(*trace);
    for (std::size_t rank = 0; rank < trace->ranks; ++rank)
      record.attribution.push_back(attribution(*trace, RankId{rank}));
    record.critical_rank = critical_rank(*trace);
  }
  record.cut_names = cut_names(plan);
  record.stages = stages_of(plan);
  record.recomputes = plan.plan.activations.recomputes();
  record.measured = measured_run(plan);
  return record;
}

/// [rank] Empty where they are set, or unknown.
std::vector<Bytes> reserved_expandable(const Evaluation& plan) {
  const auto& allocator = plan.inputs.config->plan.allocator;
  if (plan.need.reserved.empty() || allocator->expandable_segments) return {};
  return reserved_memory(plan.plan, *plan.inputs.layers, {.expandable_segments = true});
}

std::optional<LinksRecord> links_of(const EvaluatedCase& evaluated) {
  if (!evaluated.faster_links) return std::nullopt;
  const Evaluation& plan = evaluated.planned[evaluated.chosen];
  return LinksRecord{.links = link_uses(*plan.simulated),
                     .slowed = slowed_messages(*plan.simulated, plan.costs),
                     .faster = *evaluated.faster_links};
}

std::optional<SlowRanks> slow_ranks_of(const Evaluation& plan, const WhatIf& what_if) {
  if (!what_if.slow || !plan.possible()) return std::nullopt;
  SlowRanks slow =
      slow_ranks(executed_graph(plan.plan, plan.costs), plan.costs, what_if.slow->factor);
  if (what_if.slow->rank) slow.rank = RankId{*what_if.slow->rank};
  return slow;
}

}  // namespace

ResultRow row_of(const Evaluation& plan) {
  const Request& config = *plan.inputs.config;
  const ScheduleSpec& spec = plan.plan.spec;
  ResultRow row;
  row.case_name = config.name;
  row.plan = plan.name;
  row.family = spec.family;
  row.devices = config.devices;
  row.microbatches = config.microbatches;
  row.microbatch_size = plan.inputs.layers->microbatch_size * config.replicas.count;
  for (const Bytes limit : plan.need.limit)
    if (row.memory_limit.value == 0 || limit < row.memory_limit) row.memory_limit = limit;
  if (!plan.possible()) return row;
  row.stages_per_rank = spec.stages_per_rank;
  row.cuts = plan.plan.partition.cuts;
  row.knobs = knobs_of(plan);
  row.estimate = step_time(plan.estimated);
  if (plan.simulated) row.simulate = step_time(*plan.simulated);
  if (plan.simulated_spread) row.simulate_p95 = plan.simulated_spread->p95;
  if (const auto& spread = plan.estimated_spread) {
    row.estimate_p5 = spread->p5;
    row.estimate_median = spread->median;
    row.estimate_p95 = spread->p95;
  }
  if (plan.measurement) row.measure = plan.measurement->step();
  row.peak_memory = Bytes{0};
  for (const Bytes peak : plan.need.allocated) row.peak_memory = std::max(*row.peak_memory, peak);
  if (!plan.need.reserved.empty()) row.reserved = std::ranges::max(plan.need.reserved);
  row.feasible = plan.fits();
  return row;
}

TraceSource compared_engine(const EvaluatedCase& evaluated) {
  std::vector<ResultRow> rows;
  for (const Evaluation* plan : plans_of(evaluated)) rows.push_back(row_of(*plan));
  std::vector<const ResultRow*> compared;
  for (const ResultRow& row : rows) compared.push_back(&row);
  return compared_engine(compared);
}

CaseRecord record_of(const EvaluatedCase& evaluated, const Request& config) {
  CaseRecord record;
  static_cast<RecordedAnswer&>(record) = recorded_answer(evaluated);
  record.name = config.name;
  record.model = file_name(config, "model", config.model.file);
  record.cluster = file_name(config, "cluster", config.cluster);
  record.calibration = calibration_text(config);
  record.digest = evaluated.digest;
  const Evaluation& chosen = evaluated.planned[evaluated.chosen];
  record.notes = chosen.inputs.layers->notes;
  record.uncosted = chosen.inputs.layers->uncosted;
  record.notes.insert(record.notes.end(), chosen.inputs.cluster->notes.begin(),
                      chosen.inputs.cluster->notes.end());
  if (chosen.possible() && !chosen.inputs.layers->steps.empty())
    record.notes.push_back(
        to_string(communication_times(*chosen.inputs.layers, chosen.plan, *chosen.inputs.cluster)));
  const TraceSource engine = compared_engine(evaluated);
  for (const Evaluation* plan : plans_of(evaluated)) {
    record.plans.push_back(plan_record(*plan, evaluated, engine));
    if (const auto bound = covering_bound(evaluated, *plan))
      add_bound(*bound, record.links_bound, record.plans.back().row);
  }
  record.plans.front().row.search_s = evaluated.answer().seconds;
  record.plans.front().row.candidates = evaluated.answer().candidates;
  record.bound_covers = covered_text(evaluated, chosen);
  for (const Priced& plan : evaluated.answer().front)
    record.front.push_back({name_of(plan), plan.estimate, largest_peak(plan)});
  record.plans.front().reserved_expandable = reserved_expandable(chosen);
  record.choices = choices_of(evaluated);
  record.links = links_of(evaluated);
  record.slow = slow_ranks_of(chosen, config.what_if);
  return record;
}

std::vector<Evaluation*> kept_plans(EvaluatedCase& evaluated) {
  std::vector<Evaluation*> plans{&evaluated.planned[evaluated.chosen]};
  for (Evaluation& baseline : evaluated.baselines) plans.push_back(&baseline);
  if (evaluated.less_memory) plans.push_back(&evaluated.planned[*evaluated.less_memory]);
  std::erase_if(plans, [](const Evaluation* plan) { return !plan->possible(); });
  return plans;
}

std::vector<const Evaluation*> kept_plans(const EvaluatedCase& evaluated) {
  std::vector<const Evaluation*> plans = plans_of(evaluated);
  std::erase_if(plans, [](const Evaluation* plan) { return !plan->possible(); });
  return plans;
}

}  // namespace pfeife
