// A plan's layers as plots/timeline/partition.h draws them.
#pragma once

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/plan.h"
#include "plots/timeline/partition.h"

namespace pfeife {

/// Times on the device kind of each layer's rank, without overheads of stages. What several layers
/// use or save counts for the first of them.
Ribbon layer_ribbon(const Layers& layers, const Cluster& cluster, const Plan& plan);

}  // namespace pfeife
