// Why the chosen plan is the plan: beside what the search says, which compares estimates alone, any
// of its best plans may be the chosen one.
#pragma once

#include <vector>

#include "experiments/plans/evaluated_case.h"
#include "planner/ir/result/case_record.h"

namespace pfeife {

/// What each way of choosing picks, of the ways for which there are figures.
std::vector<PlanChoice> choices_of(const EvaluatedCase& evaluated);

/// What the answer says beside the chosen plan: the search's other good plans and the schedules
/// that it rejected are lost, and alternatives are compared with that plan.
RecordedAnswer recorded_answer(const EvaluatedCase& evaluated);

}  // namespace pfeife
