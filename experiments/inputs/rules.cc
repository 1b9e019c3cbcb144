#include <algorithm>
#include <thread>

#include "experiments/inputs/inputs.h"
#include "planner/cost/layers/linear_order.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/schedules/families.h"

namespace pfeife {

ExperimentRules rules_of(Inputs& inputs) {
  ExperimentRules rules;
  for (const Mode mode : {Mode::Train, Mode::Forward})
    for (const Family& family : families(mode)) rules.families.push_back(family.name);
  for (const Family& family : shared_head_families()) rules.families.push_back(family.name);
  rules.orders = linear_orders();
  rules.order_of_plan = [](const PlanSettings& plan) { return read_plan(*plan.file).linear_order; };
  rules.training_of_plan = [](const PlanSettings& plan) { return read_plan(*plan.file).training; };
  rules.devices = [&inputs](const CaseConfig& config) -> std::size_t {
    if (config.cluster_measured) return std::max(1U, std::thread::hardware_concurrency());
    return inputs.as_published(config).devices();
  };
  rules.device_kinds = [&inputs](const CaseConfig& config) {
    std::vector<std::string> names;
    for (const DeviceKind& kind : inputs.as_published(config).kinds) names.push_back(kind.name);
    return names;
  };
  rules.ranks_and_microbatches = [](const PlanSettings& plan) {
    const Schedule schedule =
        plan.file ? read_plan(*plan.file).schedule : read_schedule_file(*plan.schedule);
    return std::pair(schedule.ranks(), microbatch_count(schedule) / slice_count(schedule));
  };
  return rules;
}

}  // namespace pfeife
