// A rank that computes slower than the plan takes it to: what the step takes then, and how much of
// that no rank waits for.
#pragma once

#include "planner/ir/result/slow_ranks.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// The estimate of `graph` with the compute and optimizer tasks of each rank in turn `factor` times
/// as long; the order of actions, transfers and copies stay. `graph` must be free of deadlock. Some
/// ten estimates a rank.
SlowRanks slow_ranks(const DependencyGraph& graph, const StageCosts& costs, double factor);

}  // namespace pfeife
