// The bound of a plan, as plan.yaml has it.
#pragma once

#include "planner/io/files/fields.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

/// `bound` of plan.yaml. `spec` = the plan's: its ranks and microbatches are those of all schedules
/// that the bound covers.
Kind<Bound> bound_map(const ScheduleSpec& spec);

}  // namespace pfeife
