// Cuts are given: only the schedule is chosen.
#pragma once

#include "planner/search/search.h"

namespace pfeife {

/// Every schedule of the problem is evaluated on problem.cuts; nothing is searched. The bound is of
/// these cuts.
SearchOutcome choose_schedule(const Problem& problem, const SearchOptions& options);

}  // namespace pfeife
