// The bound of a plan, as plan.yaml has it.
#pragma once

#include "planner/io/files/yaml_node.h"
#include "planner/io/files/yaml_value.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

YamlValue bound_value(const Bound& bound);
/// `spec` = the plan's: its ranks and microbatches are those of all schedules that the bound
/// covers. Errors: ConfigError at what is wrong.
Bound read_bound(const YamlNode& node, const ScheduleSpec& spec);

}  // namespace pfeife
