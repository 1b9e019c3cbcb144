// How long an action holds its rank: for lowering and for the DependencyGraph.
#pragma once

#include "planner/ir/schedule/action.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// Time of F, B, I, W or an optimizer step on its stage; 0 for actions that do not compute. `last`:
/// its microbatch is the one that the stage runs forward last.
Nanoseconds action_time(const Action& action, const StageCosts& costs, bool last = false);

}  // namespace pfeife
