// A model's layers from those of the same model with few transformer layers: each distinct layer is
// priced once.
#pragma once

#include <span>

#include "planner/ir/model/layers.h"

namespace pfeife {

/// The layers of each transformer layer: before, in and behind attention.
inline constexpr std::size_t kPiecesOfLayer = 3;

/// `few`: an embedding, transformer layers of three layers each, a head. Gives an embedding, for
/// each source a copy of that transformer layer of `few`, and the head. Names that contain
/// "layers.N." count on. Values reach from a transformer layer to the next one at most, so that a
/// copy's successor must be like its source's. Linear in the result.
Layers repeat_layers(const Layers& few, std::span<const std::size_t> sources);

}  // namespace pfeife
