// What slices of a microbatch's sequence cost each stage of a partition.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/choice.h"
#include "planner/ir/schedule/slice_costs.h"

namespace pfeife {

/// Adds the costs of so many slices to the stage costs of a partition (with_slices), cut at whole
/// tokens where the layers know them. Attention counts by each stage's own share; equal times are
/// those of the whole model. Messages are timed anew, DeviceKind::stage_overhead is in every
/// action, gradients of keys and values wait for their own slice's backward. The gradients of
/// replicas are reduced beside the shortest slice's backward at most.
///
/// `recomputed`: as in `whole`, whose stages and blocks keep keys and values, which later slices
/// read, until their own backward; a stage offloads its share of what it saves besides.
/// Errors: ConfigError if the layers have no Sequence, or fewer tokens than slices.
StageCosts sliced_stage_costs(StageCosts whole, std::size_t slices, SliceLengths lengths,
                              const Layers& layers, const Partition& partition,
                              const Placement& placement, const Cluster& cluster,
                              const Recomputed& recomputed = {});

/// [slice] Where each slice of the sequence of all layers ends, as a share of it, at whole tokens
/// where the layers know them; the last one is 1. The layers must have a Sequence.
std::vector<double> slice_ends_of(const Layers& layers, std::size_t slices, SliceLengths lengths);

/// Why the layers cannot be cut into so many slices; "" = they can.
std::string not_sliced_because(const Layers& layers, std::size_t slices);

}  // namespace pfeife
