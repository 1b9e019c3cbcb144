// Schedules that cut the sequence of each microbatch into slices. What prices whole microbatches
// fast, bounds them and proves it knows no slices, so these schedules go apart.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// Some of the problem's schedules have slices.
bool has_slices(const Problem& problem);

/// The search of a problem with such schedules. The others are searched as ever. The plan of each
/// that has slices is what takes least by evaluate(): on the best cuts of 1F1B (of `looped` with
/// several stages a rank) for whole microbatches without a memory limit, those of the other
/// schedules' plans, and cuts around these, of which SearchOptions::iterations says how many.
/// Families that are built for costs get an order for the cuts, which then move under it. Where
/// Problem::recompute allows it and cuts do not fit otherwise, stages recompute (with_stage_uses).
/// The bound is that of sliced_bound() and of work_bound(); no certificate.
Answer search_with_slices(const Problem& problem, const SearchOptions& options,
                          const SearchFunction& search);

}  // namespace pfeife
