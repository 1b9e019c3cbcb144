// What a plan is compared with.
#pragma once

#include "experiments/plans/evaluate.h"

namespace pfeife {

/// A family on equal-time cuts, one stage a device where it allows that, otherwise as few as it
/// does; with a reason in place of a schedule where it cannot be. What it recomputes is chosen on
/// these cuts; of what does not fit with any choice, all that it may recompute.
Evaluation baseline(const BaselineSettings& settings, const CaseInputs& inputs);

}  // namespace pfeife
