// The plans between which time and memory can be traded.
#pragma once

#include <vector>

#include "planner/search/problem.h"

namespace pfeife {

/// Those of `plans` that no other one beats in step time and largest peak at once, the fastest
/// first; of equal ones the first.
std::vector<Priced> pareto_front(std::vector<Priced> plans);

}  // namespace pfeife
