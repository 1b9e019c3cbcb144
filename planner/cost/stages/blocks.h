// What may be recomputed by itself: the blocks of a model, or its attention.
#pragma once

#include "planner/ir/model/layers.h"

namespace pfeife {

/// The layer is in a module whose path has a number (layers.3.mlp).
bool in_numbered_module(const Layer& layer);

/// Layers one after the other, all of them, none twice, with legal cuts between. Sorted. A border
/// is
/// - where the modules' paths have numbers (layers.3.mlp, h.11.attn): where the path up to the
/// first
///   of them changes;
/// - else, where half of the layers or more are one piece of several layers again and again (the
/// same
///   names but for digits, the same bytes): behind each piece;
/// - else, and outside of those pieces: after every layer behind which one value is all that
/// passes.
std::vector<LayerRange> model_blocks(const Layers& layers);

/// Layers one after the other of a module that has `attn` or `attention` in its name, where cuts
/// before and behind them are legal. Sorted; none in a table without modules.
std::vector<LayerRange> attention_blocks(const Layers& layers);

/// `blocks` with those in two that a cut goes through.
std::vector<LayerRange> cut_blocks(const std::vector<LayerRange>& blocks,
                                   const Partition& partition);

}  // namespace pfeife
