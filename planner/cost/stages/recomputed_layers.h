// Recomputation by blocks, as other costs of the layers: whoever reckons with layers needs to know
// nothing of it.
//
// Not modelled: that a forward which only has to make inputs of the backward could stop before its
// last operators; that what one layer would keep goes while the same layer runs.
#pragma once

#include "planner/ir/model/layers.h"

namespace pfeife {

/// The layers with each of `blocks` recomputed by itself: sorted, none overlaps another, each
/// within a stage of `partition`.
///
/// A block keeps the values that enter it, and what it reads of the model's inputs, from F to the
/// end of its backward. B or I of its last layer begins with the forward of the whole block, which
/// is added to the time of I. What the block would save then exists until its layers' backward is
/// done, but for what W needs, which waits as ever; within F a layer has its own until it ends, and
/// what is read later until then. So of a microbatch one block's values exist at a time. What a
/// block shares with layers outside, and makes itself, is made a second time. Linear in layers,
/// storages and blocks.
Layers recomputed_layers(Layers layers, const Partition& partition,
                         const std::vector<LayerRange>& blocks);

/// Why `blocks` cannot be recomputed by themselves: out of range or of order, in several stages, or
/// with no legal cut before or behind one. "" = they can.
std::string illegal_because(const Layers& layers, const Partition& partition,
                            const std::vector<LayerRange>& blocks);

}  // namespace pfeife
