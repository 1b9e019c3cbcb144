// What a step is no shorter than because of what it sends, for given cuts.
#pragma once

#include "planner/ir/machine/cluster.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// How long the busiest link takes for all that a step sends over it, at full speed: no step with
/// shared links is shorter.
Nanoseconds busiest_link(const StageCosts& costs, const Placement& placement,
                         const Cluster& cluster, std::size_t microbatches);

/// How long the messages of the fullest queue take one after the other: no step is shorter. 0
/// without queues.
Nanoseconds fullest_queue(const StageCosts& costs, const Placement& placement, Queues queues,
                          std::size_t microbatches);

}  // namespace pfeife
