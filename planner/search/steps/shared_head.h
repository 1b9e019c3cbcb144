// Schedules whose ranks share the output layer. What prices layers fast, bounds and proves them
// knows the output layer where the layers have it, so these schedules are a step of their own.
#pragma once

#include "planner/search/pool/pool.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Some of the problem's schedules share the output layer.
bool has_shared_head(const Problem& problem);

/// Adds a plan of each listed schedule that shares the output layer to a pool that has the plans of
/// the other schedules. The layers must say what a rank's share is (Layers::words). Each plan is
/// the one that takes least by evaluate(), among cuts for the work of the layers that are not
/// divided, the cuts of the plans in the pool, and cuts around these, of which
/// SearchOptions::iterations says how many. Stages recompute where Problem::recompute allows it and
/// cuts do not fit otherwise. The pool's claim becomes one for all schedules, without a
/// certificate: of those that share the output layer it is work_bound(), the compute of the slowest
/// rank, which ignores warm-up.
void add_shared_head_plans(const Problem& problem, const SearchOptions& options,
                           const SearchFunction& search, Pool& pool);

}  // namespace pfeife
