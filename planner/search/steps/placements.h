// Stages on any ranks, in place of round robin or a V, and any number of them on each.
#pragma once

#include "planner/search/pool/pool.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Adds plans that are faster than all in the pool: `zb_greedy` on placements of its own
/// (ScheduleSpec::rank_of_stage). From the best plans of the pool, stages change ranks, are split
/// and joined, and cuts move, while an order is built for each; BuiltSearch then improves the cuts
/// and orders of the best. Each keeps to the memory limits. Deterministic, whatever
/// options.threads. Adds nothing if the pool has no plan or the problem does not list zb_greedy.
void add_placed_plans(const Problem& problem, const SearchOptions& options,
                      const SearchFunction& search, Pool& pool);

}  // namespace pfeife
