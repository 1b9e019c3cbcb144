// The door of the planner: a problem goes in, the best few plans come out.
#pragma once

#include <string_view>
#include <vector>

#include "planner/ir/result/plan.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Chooses cuts and schedule together. Deterministic for equal input, whatever `threads`.
Answer search(const Problem& problem, const SearchOptions& options);

/// The names of the steps of a search over cuts. All but the first may be left out.
std::vector<std::string_view> search_steps();

/// The choices as a plan, its schedule compute-only: priced_plan() of planner/cost makes the rest.
Plan plan_of(const Priced& planned);

}  // namespace pfeife
