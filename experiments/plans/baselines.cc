#include "experiments/plans/baselines.h"

#include "experiments/plans/case_limits.h"
#include "planner/schedules/families.h"
#include "planner/search/cuts/min_max.h"
#include "planner/search/search.h"

namespace pfeife {

Evaluation baseline(const std::string& name, const CaseInputs& inputs) {
  const CaseConfig& config = *inputs.config;
  // One stage a device where the family allows it, otherwise as few as it does.
  ScheduleSpec spec{.family = name,
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
  if (family(name).built_for_costs) {
    const Problem problem{
        *inputs.layers, *inputs.cluster, {spec}, devices, memory_limits(config, *inputs.cluster),
        *cuts};
    SearchOutcome outcome = search(problem, {.keep = 1});
    if (outcome.plans.empty())
      return impossible("no order fits into the memory on equal-time cuts");
    planned.order = std::move(outcome.plans.front().order);
  }
  return estimated_plan(inputs, Origin::Baseline, name, plan_of(planned, devices), false);
}

}  // namespace pfeife
