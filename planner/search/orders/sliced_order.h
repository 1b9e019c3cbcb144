// Orders over slices of the sequence, built for what given cuts cost.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// The order of the choice's slices on its cuts, within the memory limits if one is found; as fast
/// as seq1f1b and slimpipe with split backwards where these fit. `effort` as
/// SearchOptions::effort().
Schedule build_sliced_order(const Problem& problem, const Choice& choice, std::size_t effort);

}  // namespace pfeife
