// The certificate of a problem that is ruled out without a search.
#pragma once

#include <memory>

#include "planner/search/search.h"

namespace pfeife {

/// Proves what no order of any actions goes below in the placements of problem.schedules, whatever
/// the cuts and whichever stages are recomputed: the part of work_bound (work_bound.h) that the
/// judge knows. One proof for each placement. nullptr: nothing can be proven.
std::shared_ptr<const Certificate> work_certificate(const Problem& problem);

/// The same by work shared by the devices alone (shared_work_bound, in whole numbers), which holds
/// for every order of them.
std::shared_ptr<const Certificate> shared_work_certificate(const Problem& problem);

}  // namespace pfeife
