// Orders built for the costs that need less memory: as long as the limits let it, a built order
// holds whatever makes it no slower.
#pragma once

#include <vector>

#include "planner/search/problem.h"

namespace pfeife {

/// Orders on the cuts of those of `plans` whose order was built, less full than the plan, that take
/// at most the share `slower` longer than the fastest of `plans`: what tighter limits lead to.
/// Plans that chose to recompute are left out. Deterministic.
std::vector<Priced> leaner_orders(const Problem& problem, const std::vector<Priced>& plans,
                                  double slower, std::size_t threads);

}  // namespace pfeife
