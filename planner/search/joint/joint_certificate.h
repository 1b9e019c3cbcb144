// The certificate of a joint search: of every schedule the tree of its own cuts, or what no order
// of its stages goes below.
#pragma once

#include "planner/search/joint/joint_outcome.h"

namespace pfeife {

/// Proves outcome.bound, or that nothing fits. Where a schedule's bound is one that the judge does
/// not know, it proves less: what can be proven of all. `built`: what no order
/// goes below of the schedules that are built for the costs. nullptr: nothing can be proven.
std::shared_ptr<const Certificate> joint_certificate(const Searched& searched,
                                                     const std::vector<AnyOrder>& built,
                                                     const Answer& outcome);

}  // namespace pfeife
