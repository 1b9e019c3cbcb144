// Plans and schedules that a config names instead of having them searched.
#pragma once

#include "experiments/plans/evaluate.h"

namespace pfeife {

/// Refuses a given plan that is of another model, and a given schedule or plan that does not fit
/// its cuts or cannot run. Errors: ConfigError.
void check_given(const CaseInputs& inputs);

/// The plan that the config names, or its schedule on its cuts, of a case that passed check_given.
Evaluation given_plan(const CaseInputs& inputs);

}  // namespace pfeife
