#include "experiments/plans/given_plans.h"

#include "experiments/plans/case_limits.h"
#include "planner/cost/stages/recomputed_layers.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/request/check.h"
#include "planner/ir/schedule/lower.h"

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
  if (const std::string reason = illegal_because(layers, plan.partition, plan.recomputed.blocks);
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

}  // namespace

void check_given(const CaseInputs& inputs) {
  const Given given = read_given(inputs);
  const Plan& plan = given.plan;
  const StageCosts costs = stage_costs(*inputs.layers, plan, *inputs.cluster);
  const Requirements needs{stage_graph(costs), plan.spec.microbatches * plan.spec.slices,
                           given.lowered, plan.spec.slices};
  const std::vector<Violation> violations = validate(plan.schedule, needs);
  if (violations.empty()) return;
  const Violation& first = violations.front();
  refuse(*inputs.config, " cannot run: rank " + to_string(first.rank) + ", cell " +
                             std::to_string(first.position) + ": " + first.message +
                             "; see pfeife-schedule validate");
}

Evaluation given_plan(const CaseInputs& inputs) {
  Given given = read_given(inputs);
  return estimated_plan(inputs, given.origin, kPlanned, std::move(given.plan), given.lowered);
}

}  // namespace pfeife
