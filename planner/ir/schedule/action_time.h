// How long an action holds its rank: for lowering and for the DependencyGraph.
#pragma once

#include <functional>
#include <span>

#include "planner/ir/schedule/action.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// Time of F, B, I, W or an optimizer step on its stage; 0 for actions that do not compute. `last`:
/// its microbatch is the one that the stage runs forward last.
Nanoseconds action_time(const Action& action, const StageCosts& costs, bool last = false);

/// Time of actions side by side, `last` said of each: as long as all of them compute
/// (StageCosts::overlap_factor) or all of them wait for collectives, whichever is longer, and no
/// shorter than one of them by itself. Without collectives the sum. A forward beside a backward
/// takes what StageCosts::side_by_side says of them, if anything.
Nanoseconds side_by_side_time(std::span<const Action> actions, const StageCosts& costs,
                              const std::function<bool(const Action&)>& last);

}  // namespace pfeife
