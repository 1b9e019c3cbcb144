// Cuts are given: only the schedule is chosen.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// Every schedule of the problem is evaluated on problem.cuts; nothing is searched. The bound is of
/// these cuts. `search` answers for a single microbatch.
Answer choose_schedule(const Problem& problem, const SearchOptions& options,
                       const SearchFunction& search);

}  // namespace pfeife
