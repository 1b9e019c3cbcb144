#include "experiments/plans/given_plans.h"

#include <algorithm>

#include "experiments/plans/case_limits.h"
#include "planner/cost/stages/recomputed_layers.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/request/check.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "planner/search/orders/microbatch_permutation.h"

namespace pfeife {
namespace {

/// Says of the given file why it cannot be the plan.
[[noreturn]] void refuse(const Request& config, const std::string& why) {
  throw RefusedWish(given_key(config.plan), "\"" + given_file_name(config) + "\"" + why);
}

struct Given {
  Plan plan;  ///< its choices
  Origin origin = Origin::PlanFile;
  bool lowered = true;
};

Given read_given_schedule(const CaseInputs& inputs) {
  const Request& config = *inputs.config;
  Given given{.origin = Origin::ScheduleFile};
  Plan& plan = given.plan;
  plan.schedule = read_schedule_file(*config.plan.schedule);
  given.lowered = has_transfers(plan.schedule);
  const std::optional<Placement> placement = placement_of(plan.schedule);
  if (!placement) refuse(config, " has a stage on two ranks, or misses one");
  plan.partition = *given_cuts(config, *inputs.layers);
  if (plan.partition.stages() != placement->stages())
    throw RefusedWish("plan.cuts", "plan.cuts: the cuts make " +
                                       std::to_string(plan.partition.stages()) + " stages, \"" +
                                       given_file_name(config) + "\" has " +
                                       std::to_string(placement->stages()));
  plan.spec = {.family = "file",
               .ranks = plan.schedule.ranks(),
               .microbatches = microbatch_count(plan.schedule) / slice_count(plan.schedule),
               .stages_per_rank = placement->stages() / plan.schedule.ranks(),
               .slices = slice_count(plan.schedule)};
  plan.placement = *placement;
  plan.placement.device_of_rank = devices_of(config);
  return given;
}

Given read_given_plan(const CaseInputs& inputs) {
  const Layers& layers = *inputs.layers;
  const Cluster& cluster = *inputs.cluster;
  const Request& config = *inputs.config;
  Plan plan = read_plan(*config.plan.file);
  if (plan.model_digest != layers.digest)
    refuse(config, " was made for another model (\"" + plan.model + "\" with digest " +
                       plan.model_digest.substr(0, 12) + "..., this one has " +
                       layers.digest.substr(0, 12) + "...)");
  if (plan.linear_order != layers.order)
    refuse(config,
           " has its layers in the order \"" + plan.linear_order + "\", which this model has not");
  if (const std::string reason = illegal_because(layers, plan.partition); !reason.empty())
    refuse(config, ": " + reason);
  if (const std::string reason = illegal_because(layers, plan.partition, plan.activations.blocks);
      !reason.empty())
    refuse(config, ": " + reason);
  for (const DeviceId device : plan.placement.device_of_rank)
    if (device.index() >= cluster.devices())
      refuse(config, " uses device " + to_string(device) + ", the cluster has " +
                         std::to_string(cluster.devices()));
  return {.plan = std::move(plan)};
}

Given read_given(const CaseInputs& inputs) {
  return inputs.config->plan.file ? read_given_plan(inputs) : read_given_schedule(inputs);
}

/// The rows' computations, in their order.
Schedule computations(Schedule rows) {
  for (std::vector<Cell>& row : rows.rows)
    std::erase_if(row, [](const Cell& cell) {
      const auto* const action = std::get_if<Action>(&cell);
      return std::holds_alternative<std::monostate>(cell) ||
             (action != nullptr && !is_compute(action->op));
    });
  return rows;
}

/// The family's rows. Where microbatches differ, those of `plan` stand in its order.
Schedule rows_of_family(const Plan& plan) {
  Schedule rows = generate(plan.spec);
  if (plan.training.microbatch_costs.empty()) return rows;
  const MicrobatchOrder usual = forward_order(rows), own = forward_order(plan.schedule);
  MicrobatchOrder sorted = own;
  std::ranges::sort(sorted);
  for (std::uint32_t m = 0; m < sorted.size(); ++m)
    if (sorted[m] != m || own.size() != usual.size()) return rows;
  MicrobatchOrder order(own.size());
  for (std::size_t i = 0; i < own.size(); ++i) order[usual[i]] = own[i];
  return relabelled(std::move(rows), order);
}

/// A plan says which schedule its rows are of, and rows that are of another one would be shown
/// under its name. Any order may be one that is built for costs.
void check_schedule(const Request& config, const Plan& plan) {
  const ScheduleSpec& spec = plan.spec;
  if (spec.family == "file") return;
  const std::string name = schedule_name(spec);
  const std::string cure =
      "; correct `schedule` and `placement`, or give the rows by themselves: plan: {schedule: "
      "..., cuts: [...]}";
  const auto is_known = [&](Mode mode) {
    return std::ranges::find(families(mode), spec.family, &Family::name) != families(mode).end();
  };
  if (!is_known(Mode::Train) && !is_known(Mode::Forward) && !shares_head(spec))
    refuse(config, ": there is no schedule family '" + spec.family + "'" + cure);
  if (const auto refused = refusal(spec)) refuse(config, ": " + to_string(*refused, spec) + cure);
  const bool built = family(spec.family).built_for_costs;
  if (placement_for(spec).rank_of_stage != plan.placement.rank_of_stage ||
      (!built && computations(rows_of_family(plan)) != computations(plan.schedule)))
    refuse(config, ": its rows are not those of " + name + cure);
}

/// [stage] Its rows have an OFFLOAD.
std::vector<bool> stages_with_copies(const Plan& plan) {
  std::vector<bool> copies(plan.placement.stages(), false);
  for (const std::vector<Cell>& row : plan.schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) {
        if (action.op == Op::Offload) copies[action.stage.index()] = true;
      });
  return copies;
}

/// Does in the rows what the plan says beside them: rows without copies get those of its shares,
/// rows that receive as soon as they can get late ones. Errors: RefusedWish where a stage's share
/// has no copies and none can be put in.
void complete(const Request& config, const StageCosts& costs, Plan& plan) {
  const auto is_any = [](const std::vector<bool>& stages) {
    return std::ranges::find(stages, true) != stages.end();
  };
  const bool had_copies = is_any(stages_with_copies(plan));
  if (plan.receives == Receives::AtNeed && !had_copies) {
    StageCosts kept = costs;
    for (StageCost& stage : kept.stages) stage.offloaded = Bytes{0};
    if (lower(computations(plan.schedule), kept, plan.placement) == plan.schedule)
      plan.schedule = with_late_receives(plan.schedule, stage_graph(costs), plan.placement);
  }
  if (!plan.activations.offloads()) return;
  if (!had_copies)
    plan.schedule = with_offload(plan.schedule, costs, plan.placement,
                                 [](StageId, MicrobatchId) { return true; });
  const std::vector<bool> copies = stages_with_copies(plan);
  for (std::size_t s = 0; s < copies.size(); ++s)
    if (plan.activations.offload[s] > 0 && !copies[s])
      refuse(config,
             ": stage " + std::to_string(s) +
                 (had_copies ? " offloads, but its rows have no OFFLOAD, while those of other "
                               "stages have; write 0 for it in `offload`, or give rows without "
                               "OFFLOAD and RELOAD, into which they are put"
                             : " cannot offload: no microbatch is away from it for as long as "
                               "both copies take; write 0 for it in `offload`"));
}

}  // namespace

void check_given(const CaseInputs& inputs) {
  Given given = read_given(inputs);
  const Plan& plan = given.plan;
  check_schedule(*inputs.config, plan);
  const StageCosts costs = stage_costs(*inputs.layers, plan, *inputs.cluster);
  const Requirements needs{stage_graph(costs), plan.spec.microbatches * plan.spec.slices,
                           given.lowered, plan.spec.slices};
  const std::vector<Violation> violations = validate(plan.schedule, needs);
  if (violations.empty()) {
    complete(*inputs.config, costs, given.plan);
    return;
  }
  const Violation& first = violations.front();
  refuse(*inputs.config, " cannot run: rank " + to_string(first.rank) + ", cell " +
                             std::to_string(first.position) + ": " + first.message +
                             "; see pfeife-schedule validate");
}

Evaluation given_plan(const CaseInputs& inputs) {
  Given given = read_given(inputs);
  complete(*inputs.config, stage_costs(*inputs.layers, given.plan, *inputs.cluster), given.plan);
  return estimated_plan(inputs, given.origin, kPlanned, std::move(given.plan), given.lowered);
}

}  // namespace pfeife
