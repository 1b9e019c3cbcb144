// Reductions of gradients over dp in the order of the schedule: REDUCE_GRAD of a stage, for which
// its optimizer step waits.
#pragma once

#include <vector>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/mesh/mesh_layers.h"

namespace pfeife {

/// Takes the reductions of stages that share no parameter with another rank out of their optimizer
/// times and makes them reductions of one stage each, which lower() puts behind its last backward.
void schedule_reductions(const MeshLayers& made, const Partition& partition, StageCosts& costs);

/// [rank] how long its optimizer steps wait for reductions, estimated. The schedule must not
/// deadlock.
std::vector<Nanoseconds> optimizer_waits(const Schedule& lowered, const StageCosts& costs,
                                         const Placement& placement);

}  // namespace pfeife
