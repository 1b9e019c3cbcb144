// The pictures of a case and of its plans, as documents.
#pragma once

#include <string>
#include <vector>

#include "experiments/plans/evaluated_case.h"
#include "plots/report/report.h"

namespace pfeife {

/// The traces of all engines that there are of the plan, the estimate first.
std::vector<Trace> traces_of(const Evaluation& plan);

/// What a report shows of a case: of its plans in the order of its record. No picture of what is
/// not possible.
CaseDrawings drawings_of(const EvaluatedCase& evaluated);

}  // namespace pfeife
