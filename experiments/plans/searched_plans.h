// Plans that the search finds for a case, and what stands beside them: plans of other cases, leaner
// orders, or why there is none.
#pragma once

#include "experiments/plans/plan_case.h"

namespace pfeife {

/// Fills in everything of `plans` but the baselines and `digest`. Result: the case with nothing
/// left open, its config that of `plans.settled`.
CaseInputs search_plans(const CaseInputs& inputs, const LayersOf& layers_of,
                        const SearchOptions& options, EvaluatedCase& plans);

}  // namespace pfeife
