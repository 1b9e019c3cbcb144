// The plan of a case is chosen: where the case simulates, with the simulator in the search.
#pragma once

#include <functional>
#include <span>

#include "experiments/plans/evaluated_case.h"

namespace pfeife {

/// Simulates the plans of the cases as they ask for it, and sets their `chosen`. To the planned
/// ones of a case that is searched and simulated it adds those that are fastest with shared links:
/// of the plans that the search knows, of those found with links in mind, and of the baselines that
/// fit and whose family, stages a rank and cuts are among those that the config leaves open. So the
/// chosen plan is not simulated slower than these baselines by more than plan.as_fast, unless the
/// config chooses by another figure. `workers`: processes and threads; `progress`: the share of one
/// case that is done. Errors: RuntimeFault.
void simulate_cases(std::span<EvaluatedCase> cases, std::size_t workers,
                    const std::function<void(double)>& progress = {});

}  // namespace pfeife
