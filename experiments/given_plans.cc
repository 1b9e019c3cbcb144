#include "experiments/given_plans.h"

#include "planner/cost/stage_costs.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/error.h"
#include "planner/ir/lower.h"
#include "planner/ir/validate.h"

namespace pfeife {
namespace {

/// Refuses a schedule, lowered or compute-only, that does not do what the model needs.
void check_given(const Schedule& schedule, bool lowered, const ScheduleSpec& spec,
                 const CaseConfig& config, const StageCosts& costs) {
  const Requirements needs{stage_graph(costs), spec.microbatches, lowered};
  const std::vector<Violation> violations = validate(schedule, needs);
  if (violations.empty()) return;
  const Violation& first = violations.front();
  throw ConfigError(config.plan.file->where, "\"" + config.plan.file->written +
                                                 "\" cannot run: rank " + to_string(first.rank) +
                                                 ", cell " + std::to_string(first.position) + ": " +
                                                 first.message + "; see pfeife-schedule validate");
}

}  // namespace

Candidate from_schedule(const CaseConfig& config, const Layers& layers, const Cluster& cluster) {
  const InputFile& file = *config.plan.file;
  Schedule schedule = read_schedule_file(file.path);
  const std::optional<Placement> placement = placement_of(schedule);
  if (!placement)
    throw ConfigError(file.where,
                      "\"" + file.written + "\" has a stage on two ranks, or misses one");
  const Partition partition = *given_cuts(config, layers);
  if (partition.stages() != placement->stages())
    throw ConfigError(config.plan.cuts_where, "plan.cuts: the cuts make " +
                                                  std::to_string(partition.stages()) +
                                                  " stages, \"" + file.written + "\" has " +
                                                  std::to_string(placement->stages()));
  Candidate candidate{.plan = "planned",
                      .reason = "",
                      .spec = {.family = "file",
                               .ranks = schedule.ranks(),
                               .microbatches = microbatch_count(schedule),
                               .loops = placement->stages() / schedule.ranks()},
                      .partition = partition,
                      .placement = placed(*placement, config),
                      .schedule = {},
                      .recompute = {}};
  const StageCosts costs = stage_costs(layers, candidate.partition, candidate.placement, cluster);
  const bool lowered = has_transfers(schedule);
  check_given(schedule, lowered, candidate.spec, config, costs);
  candidate.schedule = lowered ? schedule : lower(schedule, costs, candidate.placement);
  return candidate;
}

Candidate from_plan(const CaseConfig& config, const Layers& layers, const Cluster& cluster) {
  const InputFile& file = *config.plan.file;
  const Plan plan = read_plan(file.path);
  if (plan.model_digest != layers.digest)
    throw ConfigError(file.where, "\"" + file.written + "\" was made for another model (\"" +
                                      plan.model + "\" with digest " +
                                      plan.model_digest.substr(0, 12) + "..., this one has " +
                                      layers.digest.substr(0, 12) + "...)");
  if (plan.order != layers.order)
    throw ConfigError(file.where, "\"" + file.written + "\" has its layers in the order \"" +
                                      plan.order + "\", which this model has not");
  if (const std::string reason = illegal_because(layers, plan.partition); !reason.empty())
    throw ConfigError(file.where, "\"" + file.written + "\": " + reason);
  for (const DeviceId device : plan.placement.device_of_rank)
    if (device.index() >= cluster.devices())
      throw ConfigError(file.where, "\"" + file.written + "\" uses device " + to_string(device) +
                                        ", the cluster has " + std::to_string(cluster.devices()));
  Candidate candidate{"planned",     "", plan.spec, plan.partition, plan.placement, plan.schedule,
                      plan.recompute};
  check_given(plan.schedule, true, plan.spec, config,
              stage_costs(layers, plan.partition, plan.placement, cluster));
  return candidate;
}

}  // namespace pfeife
