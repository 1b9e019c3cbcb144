// Microbatches that differ (Layers::microbatches). What prices equal ones fast, bounds them and
// proves it knows no others, so such problems go apart.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// The search of a problem whose microbatches differ. All is first searched for equal microbatches
/// of their mean cost; the plans found are priced by evaluate() with the true costs. The best of
/// each of the fastest schedules gets other cuts around its own (as many as
/// SearchOptions::iterations says), an order built for the true costs if its family builds one,
/// and, where Problem::order_microbatches allows it, another order of microbatches
/// (search_microbatch_order), in which Choice::order then is. Where Problem::recompute allows it
/// and a plan does not fit otherwise, stages recompute (with_stage_uses). The bound is that of
/// work_bound(), which knows the costs of all microbatches; no certificate.
Answer search_unequal_microbatches(const Problem& problem, const SearchOptions& options,
                                   const SearchFunction& search);

/// The plan with the fastest order of its microbatches that fits, if that is faster; else the plan.
Priced with_ordered_microbatches(const Problem& problem, Priced plan, std::uint64_t seed);

}  // namespace pfeife
