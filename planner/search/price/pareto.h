// The plans between which time and memory can be traded.
#pragma once

#include <vector>

#include "planner/ir/result/priced.h"

namespace pfeife {

/// The plans that no other one beats in step time and fullness at once, the fastest first;
/// of equal ones the first. `memory_limit`: [rank].
std::vector<Priced> pareto_front(std::vector<Priced> plans, const std::vector<Bytes>& memory_limit);

}  // namespace pfeife
