// What microbatches that differ cost each stage of a partition.
#pragma once

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/schedule/microbatch_costs.h"

namespace pfeife {

/// Returns `any`, the costs of a microbatch of the layers' own size, with StageCosts::kinds of
/// Layers::microbatches; as it is where these are empty.
///
/// - A stage's compute is scaled by its own share of attention; DeviceKind::stage_overhead is paid
///   once by every action.
/// - The time of each message is computed for the bytes of its microbatch; a published time grows
///   as the bytes do.
/// - Of the all-reduce between replicas as much overlaps as fits beside the shortest backward.
StageCosts microbatch_stage_costs(StageCosts any, const Layers& layers, const Partition& partition,
                                  const Placement& placement, const Cluster& cluster);

}  // namespace pfeife
