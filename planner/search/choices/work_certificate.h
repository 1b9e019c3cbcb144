// The certificate of a problem that is ruled out without a search.
#pragma once

#include <memory>

#include "planner/search/search.h"

namespace pfeife {

/// Proves what no order of any actions goes below in the placements of problem.schedules, whatever
/// the cuts and whichever stages are recomputed: work_bound (work_bound.h) but for what holds only
/// where every stage sends to the next. One proof for each placement. nullptr: nothing can be
/// proven.
std::shared_ptr<const Certificate> work_certificate(const Problem& problem);

/// The same by the model as a whole alone (CertifiedProof::whole), which holds for every order of
/// the devices.
std::shared_ptr<const Certificate> whole_certificate(const Problem& problem);

}  // namespace pfeife
