// Would a faster network help? The chosen plans, simulated on other networks.
#pragma once

#include <span>

#include "experiments/plans/evaluated_case.h"

namespace pfeife {

/// Sets `faster_links` of the cases whose chosen plan was simulated with shared links that
/// something goes over: the step of the same plan with other links. Three simulations a case, with
/// `workers` processes. Errors: RuntimeFault.
void simulate_faster_links(std::span<EvaluatedCase> cases, std::size_t workers);

}  // namespace pfeife
