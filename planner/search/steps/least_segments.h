// Devices with less memory than the allocator's smallest segments: nothing to search.
#pragma once

#include <optional>

#include "planner/search/problem.h"

namespace pfeife {

/// That nothing fits, where a rank is smaller than what any rank reserves, or all are smaller than
/// what one must. nullopt: plans may fit.
std::optional<Answer> below_least_segments(const Problem& problem);

}  // namespace pfeife
