// What a plan is compared with.
#pragma once

#include "experiments/plans/evaluate.h"

namespace pfeife {

/// The schedule on the cuts of baseline_cuts.h, or on searched ones, with a reason in its place
/// where it cannot be. What it recomputes is chosen on these cuts; of what does not fit with any
/// choice, all that it may recompute.
Evaluation baseline(const BaselineSettings& settings, const CaseInputs& inputs);

}  // namespace pfeife
