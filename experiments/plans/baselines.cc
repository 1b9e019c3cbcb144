#include "experiments/plans/baselines.h"

#include "experiments/plans/case_limits.h"
#include "experiments/plans/searched_plans.h"
#include "planner/cost/blocks.h"
#include "planner/schedules/families.h"
#include "planner/search/cuts/min_max.h"
#include "planner/search/search.h"

namespace pfeife {

namespace {

/// The same, with nothing left to choose: it is to be seen what is lacking.
void recompute_all(const Problem& problem, PlannedSchedule& planned) {
  if (problem.recompute == Recompute::Blocks)
    planned.blocks = cut_blocks(problem.blocks, planned.partition);
  else if (problem.recompute != Recompute::None)
    planned.recompute.assign(planned.partition.stages(), true);
}

}  // namespace

Evaluation baseline(const BaselineSettings& settings, const CaseInputs& inputs) {
  const CaseConfig& config = *inputs.config;
  const std::string name = settings.name();
  // One stage a device where the family allows it, otherwise as few as it does.
  ScheduleSpec spec{.family = settings.family,
                    .ranks = config.devices,
                    .microbatches = config.microbatches,
                    .stages_per_rank = 1};
  auto refused = refusal(spec);
  if (refused && refused->stages_per_rank) {
    spec.stages_per_rank = *refused->stages_per_rank;
    refused = refusal(spec);
  }
  const auto impossible = [&](const std::string& reason) {
    return no_plan(inputs, Origin::Baseline, name, "not possible: " + reason, spec);
  };
  if (refused) return impossible(to_string(*refused, spec));
  const std::vector<DeviceId> devices = devices_of(config);
  Placement placement = placement_for(spec);
  placement.device_of_rank = devices;
  const auto cuts = equal_time_cuts(*inputs.layers, placement, *inputs.cluster);
  if (!cuts)
    return impossible("the model cannot be cut into " + std::to_string(spec.stages()) + " stages");
  PlannedSchedule planned{.spec = spec, .partition = *cuts};
  const bool built = family(settings.family).built_for_costs;
  if (built || settings.recompute != PlanSettings::Recompute::None) {
    Problem problem{
        *inputs.layers, *inputs.cluster, {spec}, devices, memory_limits(config, *inputs.cluster),
        *cuts};
    allow(settings.recompute, problem);
    SearchOutcome outcome = search(problem, {.keep = 1});
    if (!outcome.plans.empty())
      planned = std::move(outcome.plans.front());
    else if (built)
      return impossible("no order fits into the memory on equal-time cuts");
    else
      recompute_all(problem, planned);
  }
  return estimated_plan(inputs, Origin::Baseline, name, plan_of(planned, devices), false);
}

}  // namespace pfeife
