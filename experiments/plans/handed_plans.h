// Plans of other cases, which are candidates of a case as well.
#pragma once

#include "experiments/plans/evaluated_case.h"
#include "planner/search/problem.h"

namespace pfeife {

/// The plans of other cases that fit `problem` (its layers, devices and schedules), with the cases'
/// names; without those that the search found as well.
std::vector<std::pair<std::string, Priced>> handed_plans(const CaseInputs& inputs,
                                                         const Problem& problem,
                                                         const Answer& found);

}  // namespace pfeife
