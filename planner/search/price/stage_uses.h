// Chooses, stage by stage, what becomes of saved values between forward and backward: they are
// kept, recomputed, or offloaded to the host. Cuts and order of actions are given.
#pragma once

#include <optional>

#include "planner/search/problem.h"

namespace pfeife {

/// What is asked of the hosts.
struct HostUse {
  bool offload = false;  ///< stages may offload
  bool limited = true;   ///< hosts keep to Cluster::host_memory; false: any amount is allowed
};

/// Returns `choice` with Choice::activations set so that the plan fits the problem's memory and is
/// as fast as fastest_fitting() finds: the fastest where combinations are few, else by a local
/// search. nullopt if no combination that was tried fits. For schedules of whole microbatches and
/// of slices.
///
/// A stage recomputes what Problem::recompute allows: nothing, the whole stage, or the first 25,
/// 50, 75 or 100 % of its blocks. Of the bytes that it then keeps it offloads 0, 50 or 100 % where
/// `host` allows it and its device has a host_link.
std::optional<Choice> with_stage_uses(const Problem& problem, const Choice& choice,
                                      const HostUse& host);

}  // namespace pfeife
