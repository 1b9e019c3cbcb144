// The estimate when durations vary by chance: step times of many runs, sixteen side by side in the
// lanes of CompiledGraph.
//
// A run draws its factors from (seed, repetition, task) as the simulator does
// (planner/ir/schedule/jitter.h), so where transfers do not contend, the two agree run by run to
// the nanosecond. Unlike the search's Program, in which all microbatches of a stage take equally
// long, every task has a duration of its own here: for the few plans that a search keeps, not for
// its inner loop.
#pragma once

#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/jitter.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// Step time of each run [repetition], without contention and launch overhead. `graph` must be free
/// of deadlock. All equal if nothing varies. Cost: tasks x repetitions, about 0.2 us each.
std::vector<Nanoseconds> jittered_estimates(const DependencyGraph& graph, const StageCosts& costs,
                                            const Placement& placement, const Cluster& cluster,
                                            const Jitter& jitter, std::size_t repetitions);

}  // namespace pfeife
