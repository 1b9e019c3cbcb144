// Schedules whose F and B side by side hide collectives: searched by themselves, on layers whose
// collectives take no time, so that all that is said of sums over layers stays true.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// The search of a problem with such schedules (price/hidden_collectives.h). The other schedules
/// are searched as ever. Those that hide collectives get a bound of what they compute, or that of
/// work_bound() if it is larger; their plan is what takes least by evaluate(), of the best cuts for
/// what they compute, those of the other schedules'
/// plans, and cuts around these, of which SearchOptions::iterations says how many. No certificate.
Answer search_side_by_side(const Problem& problem, const SearchOptions& options,
                           const SearchFunction& search);

}  // namespace pfeife
