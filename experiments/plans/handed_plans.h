// Plans of other cases, which are candidates of a case as well.
#pragma once

#include "experiments/plans/evaluated_case.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Adds the plans of other cases that fit `problem` (its layers, devices and schedules) to
/// `plans.handed` and to the answer, unless the search found them as well.
void add_handed_plans(const CaseInputs& inputs, const Problem& problem, EvaluatedCase& plans);

}  // namespace pfeife
