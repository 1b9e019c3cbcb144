// A plan in full: from the choices that make it one to its transfers, costs, estimate and memory.
//   write_timeline(planned.best().estimated, "estimated.svg");
//   write_timeline(simulate(planned.best(), cluster), "simulated.svg");
#pragma once

#include <variant>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/contestant.h"
#include "planner/ir/result/priced.h"
#include "planner/ir/schedule/dependency_graph.h"

namespace pfeife {

/// Fills in what follows from the choices in `plan` (partition, spec, placement, recomputed,
/// schedule): digests, order, names of the cuts, estimate and peak memory, and the transfers of a
/// schedule that is not `lowered`, and REDUCE_NORM, if the plan needs it, of one that is. Names of
/// files, precision, optimizer, bound and how the plan was found stay as they are. The deadlock of
/// a lowered schedule that cannot run. Errors: ConfigError by lower(). Linear in actions and
/// values.
std::variant<PricedPlan, Deadlock> priced_plan(Plan plan, bool lowered, const Layers& layers,
                                               const Cluster& cluster);

/// The plan of a compute-only schedule whose costs and transfers are known (Priced::rows).
std::variant<PricedPlan, Deadlock> priced_plan(Plan plan, const CostedRows& rows,
                                               const Layers& layers, const Cluster& cluster);

/// The graph of the estimate, and what a rank that runs the plan executes: event i of every
/// engine's trace is task i of it.
DependencyGraph executed_graph(const Plan& plan, const StageCosts& costs);

}  // namespace pfeife
