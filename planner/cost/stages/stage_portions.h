// What slices of a microbatch and microbatches that differ have in common: a stage's work is scaled
// by its share of attention, and reductions overlap with whichever backward comes last.
#pragma once

#include <vector>

#include "planner/ir/model/layers.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// Attention's share of the times of layers [begin, end), by the layers' Sequence; on the first
/// kind of device.
double attention_share(const Layers& layers, std::size_t begin, std::size_t end);
/// [stage] The share outside attention; 1 where the layers have no Sequence.
std::vector<double> linear_shares(const Layers& layers, const Partition& partition);

/// The all-reduce between replicas overlaps with as much as fits beside the shortest backward that
/// any of `parts` has, as that may be the last.
void expose_reductions(const Layers& layers, const Partition& partition,
                       const std::vector<StageCosts::Slice>& parts, StageCosts& costs);

}  // namespace pfeife
