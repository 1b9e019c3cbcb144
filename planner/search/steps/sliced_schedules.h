// Schedules that cut the sequence of each microbatch into slices. What prices whole microbatches
// fast, bounds them and proves it knows no slices, so these schedules are a step of their own.
#pragma once

#include "planner/search/pool/pool.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Some of the problem's schedules have slices.
bool has_slices(const Problem& problem);

/// Adds a plan of each listed schedule with slices to a pool that has the plans of the other
/// schedules. Each plan is the one that takes least by evaluate(), among the best cuts of 1F1B (of
/// `looped` with several stages a rank) for whole microbatches without a memory limit, the cuts of
/// the plans in the pool, and cuts around these, of which SearchOptions::iterations says how many.
/// Families that are built for costs get an order for the cuts, which then move under it. Where
/// Problem::recompute allows it and cuts do not fit otherwise, stages recompute (with_stage_uses).
/// The pool's claim becomes that of sliced_bound() and work_bound(), without a certificate.
void add_sliced_plans(const Problem& problem, const SearchOptions& options,
                      const SearchFunction& search, Pool& pool);

}  // namespace pfeife
