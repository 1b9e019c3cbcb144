// Short names of what a bound covers: equal for equal classes, and for no others but by chance.
#pragma once

#include <cstdint>
#include <span>

#include "planner/search/problem.h"

namespace pfeife {

/// Of schedules (FNV-1a).
std::uint64_t digest(std::span<const ScheduleSpec> schedules);

/// Of all times and bytes that layers, devices of the ranks and paths between them have.
std::uint64_t cost_digest(const Problem& problem);

}  // namespace pfeife
