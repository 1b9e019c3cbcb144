// The load of every link in a simulated step, told from when its transfers began and ended: the
// simulator's rule of sharing (max-min fairness, see sim/README.md) says who had how much of which
// link in between. Not for traces of runs, whose networks have rules of their own.
#pragma once

#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/ir/trace/link_load.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

/// Fills trace.links with the links that something goes over, in the order of the cluster. The
/// trace is a simulation with shared links and without jitter. A transfer that goes alone takes
/// all of the narrowest link on its way, what replicas reduce what it needs to be on time. Linear
/// in both times those under way at once.
void add_link_loads(Trace& trace, const StageCosts& costs, const Placement& placement,
                    const Cluster& cluster);

/// The loads of `trace.links` in figures, the fullest first.
std::vector<LinkUse> link_uses(const Trace& trace);

/// The pairs of stages whose messages last longer than alone, the most time lost first.
std::vector<SlowedMessages> slowed_messages(const Trace& simulated, const StageCosts& costs);

/// The cluster with every link and path faster by `factor` (> 0), latencies as they are.
Cluster with_faster_links(Cluster cluster, double factor);

}  // namespace pfeife
