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
/// schedules' plans, and cuts around these, of which SearchOptions::iterations says how many. They
/// recompute nothing. Their bound is shared_work_bound(), which holds for slices as their work adds
/// up to that of the microbatch; no certificate.
Answer search_with_slices(const Problem& problem, const SearchOptions& options,
                          const SearchFunction& search);

}  // namespace pfeife
