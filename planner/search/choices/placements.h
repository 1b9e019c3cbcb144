// Stages on any ranks, in place of round robin or a V, and any number of them on each.
#pragma once

#include <vector>

#include "planner/search/problem.h"

namespace pfeife {

/// Plans faster than all of `plans`, the fastest first: `zb_greedy` on placements of its own
/// (ScheduleSpec::rank_of_stage). From the best of `plans`, stages change ranks, are split and
/// joined, and cuts move, while an order is built for each; BuiltSearch then improves the cuts and
/// orders of the best. Each keeps to the memory limits. Deterministic, whatever options.threads.
/// None if the problem does not list zb_greedy.
std::vector<Priced> placed_plans(const Problem& problem, const std::vector<Priced>& plans,
                                 const SearchOptions& options, const SearchFunction& search);

}  // namespace pfeife
