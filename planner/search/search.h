// The door of the planner: a problem goes in, the best few plans come out.
#pragma once

#include "planner/ir/result/plan.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Chooses cuts and schedule together. Deterministic for equal input, whatever `threads`.
SearchOutcome search(const Problem& problem, const SearchOptions& options);

/// The choices as a plan, its schedule compute-only: priced_plan() of planner/cost makes the rest.
Plan plan_of(const Priced& planned);

}  // namespace pfeife
