// What slices of a microbatch's sequence cost each stage of a partition.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/choice.h"
#include "planner/ir/schedule/slice_costs.h"

namespace pfeife {

/// Returns `whole`, the costs of whole microbatches, with StageCosts::slices set: the costs of each
/// of `slices` pieces of the sequence.
///
/// - Slices end at whole tokens where Sequence::tokens is known, else at any share. Slices of
///   SliceLengths::EqualTime take equal times in the model as a whole, not in each stage: a stage's
///   slices are priced by its own share of attention.
/// - The time of each message is computed for the bytes of the slice. DeviceKind::stage_overhead is
///   paid by every slice.
/// - Keys and values of a slice stay until its own backward, also in stages and blocks that are
///   recomputed, as later slices read them; those of the last slice need not. A stage offloads its
///   share of all other saved bytes.
/// - Of the all-reduce between replicas as much overlaps as fits beside the shortest slice's
///   backward.
///
/// `recomputed` must be what `whole` was computed with. Errors: ConfigError if the layers have no
/// Sequence, or fewer tokens than slices.
StageCosts sliced_stage_costs(StageCosts whole, std::size_t slices, SliceLengths lengths,
                              const Layers& layers, const Partition& partition,
                              const Placement& placement, const Cluster& cluster,
                              const Activations& activations = {});

/// [slice] Where each slice of the sequence of all layers ends, as a share of it, at whole tokens
/// where the layers know them; the last one is 1. The layers must have a Sequence.
std::vector<double> slice_ends_of(const Layers& layers, std::size_t slices, SliceLengths lengths);

/// Why the layers cannot be cut into so many slices; "" = they can.
std::string not_sliced_because(const Layers& layers, std::size_t slices);

}  // namespace pfeife
