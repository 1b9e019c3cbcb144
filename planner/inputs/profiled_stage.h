// A measured profile is that of the model as one stage, so its nodes' times hold what one stage
// costs beyond its nodes. Costs of stages add that to each stage.
#pragma once

#include "planner/ir/model/profile.h"

namespace pfeife {

/// The nodes without the overheads of one stage, each by its share of F and of B or I: with
/// each_action() added to both passes of each stage, one stage takes what was measured. What a pass
/// does not have is taken from the next one (F, I, W). No change without `stage_overheads`.
Profile without_stage(Profile measured);
/// The other way round: what is to be written. Where a pass has no time, its last node takes all.
Profile with_stage(Profile nodes_alone);

}  // namespace pfeife
