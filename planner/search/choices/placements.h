// Stages on other ranks than round robin or a V have them, and as many on each as is best.
#pragma once

#include <vector>

#include "planner/search/problem.h"

namespace pfeife {

/// Plans faster than all of `plans`, the fastest first: `zb_greedy` on placements of its own
/// (ScheduleSpec::rank_of_stage). From the best of `plans`, stages change ranks, are split and
/// joined, and cuts move, while an order is built for each; the cuts and orders of what is best
/// then get the search of built orders. Each fits `problem`. Deterministic, whatever
/// options.threads. None if the problem does not list zb_greedy.
std::vector<Priced> placed_plans(const Problem& problem, const std::vector<Priced>& plans,
                                 const SearchOptions& options, const SearchFunction& search);

}  // namespace pfeife
