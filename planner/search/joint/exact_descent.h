// A descent whose every step is priced in full: for schedules that the fast search has no program
// for.
#pragma once

#include <vector>

#include "planner/search/problem.h"

namespace pfeife {

/// Moves single cuts while that makes the plan faster, trying up to `most` plans.
Priced descended(const Problem& problem, Priced plan, std::size_t most);

/// The fastest of each schedule, the fastest of all first.
std::vector<Priced> best_of_each(std::vector<Priced> plans);

}  // namespace pfeife
