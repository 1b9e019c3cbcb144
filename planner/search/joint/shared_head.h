// Schedules whose ranks share the output layer. What prices layers fast, bounds and proves them
// knows the output layer where the layers have it, so these schedules go apart.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// Some of the problem's schedules share the output layer.
bool has_shared_head(const Problem& problem);

/// The search of a problem with such schedules, whose layers must say what a rank's share is
/// (Layers::words). The others are searched as ever. The plan of each that shares the output layer
/// is what takes least by evaluate(): on cuts for the work of the layers that are not divided,
/// those of the other schedules' plans, and cuts around these, of which SearchOptions::iterations
/// says how many. Stages recompute where Problem::recompute allows it and cuts do not fit
/// otherwise. The bound of these schedules is what their slowest rank computes (work_bound()),
/// which knows nothing of its warm-up; no certificate.
Answer search_shared_head(const Problem& problem, const SearchOptions& options,
                          const SearchFunction& search);

}  // namespace pfeife
