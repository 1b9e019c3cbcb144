// Schedules whose F and B side by side hide collectives: searched by themselves, on layers whose
// collectives take no time, so that all that is said of sums over layers stays true.
#pragma once

#include "planner/search/pool/pool.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Adds a plan of each listed schedule that hides collectives (price/hidden_collectives.h) to a
/// pool that has the plans of the other schedules. Each plan is the one that takes least by
/// evaluate(), among the best cuts for what the schedules compute, the cuts of the plans in the
/// pool, and cuts around these, of which SearchOptions::iterations says how many. The pool's claim
/// becomes one for all schedules: of those that hide collectives it is the bound of what they
/// compute, or work_bound() if that is larger.
void add_side_by_side(const Problem& problem, const SearchOptions& options,
                      const SearchFunction& search, Pool& pool);

}  // namespace pfeife
