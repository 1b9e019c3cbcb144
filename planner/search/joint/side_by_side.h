// Schedules whose F and B side by side hide collectives: searched by themselves, on layers whose
// collectives take no time, so that all that is said of sums over layers stays true.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// The search of a problem with such schedules (price/hidden_collectives.h). The other schedules
/// are searched as ever. Those that hide collectives get a bound of what they compute, their plans
/// the time that they take (evaluate.h): the best cuts for what is computed, and those of the other
/// schedules' plans. No certificate.
SearchOutcome search_side_by_side(const Problem& problem, const SearchOptions& options,
                                  const SearchFunction& search);

}  // namespace pfeife
