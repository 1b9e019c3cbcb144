// The door of the planner: a problem goes in, the best few plans come out.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// Chooses cuts and schedule together. Deterministic for equal input, whatever `threads`.
SearchOutcome search(const Problem& problem, const SearchOptions& options);

}  // namespace pfeife
