// Plans that the search finds: the schedules that a config lists, in every way to settle what it
// leaves open.
#pragma once

#include "experiments/plan_case.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Refuses schedules and cuts that the case cannot have. Errors: ConfigError.
void check_searched(const CaseConfig& config, const Layers& layers);

/// Fills in everything of `plans` but the baselines and `digest`. Result: the case with nothing
/// left open, its config that of `plans.settled`.
CaseInputs search_plans(const CaseInputs& inputs, const LayersOf& layers_of,
                        const SearchOptions& options, EvaluatedCase& plans);

/// What was searched in a case with nothing left open. Borrows from `settled`.
Problem settled_problem(const CaseInputs& settled, Recompute recompute);

}  // namespace pfeife
