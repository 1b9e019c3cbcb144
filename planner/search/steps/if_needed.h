// Recomputation where memory needs it: first without, then with it where that may be faster.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// What may be recomputed in the end: Recompute::IfNeeded as Choose, Attention as Blocks, and the
/// blocks of the model where none are given.
Problem with_settled_recomputation(Problem problem);

/// Searches a problem of Recompute::IfNeeded. Where the best plan without recomputation is near its
/// devices' limits, recomputing stages is searched, too, with half of the effort that was needed.
Answer search_if_needed(const Problem& problem, const SearchOptions& options,
                        const SearchFunction& search);

}  // namespace pfeife
