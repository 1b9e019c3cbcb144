// The plans between which time and memory can be traded.
#pragma once

#include <vector>

#include "planner/search/problem.h"

namespace pfeife {

/// The largest peak over ranks.
Bytes largest_peak(const PlannedSchedule& plan);

/// Those of `plans` that no other one beats in step time and largest peak at once, the fastest
/// first; of equal ones the first.
std::vector<PlannedSchedule> pareto_front(std::vector<PlannedSchedule> plans);

}  // namespace pfeife
