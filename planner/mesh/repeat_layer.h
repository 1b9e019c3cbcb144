// A model's layers from those of the same model with few transformer layers: each distinct layer is
// priced once.
#pragma once

#include "planner/ir/model/layers.h"

namespace pfeife {

/// The layers of each transformer layer: before, in and behind attention.
inline constexpr std::size_t kPiecesOfLayer = 3;

/// `few`: an embedding, transformer layers of three layers each, a head. Gives the same with the
/// last but one transformer layer (at least two) `more` times more. Names that contain "layers.N."
/// count on. Values reach from a transformer layer to the next one at most. Linear in the result.
Layers repeat_layer(const Layers& few, std::size_t more);

}  // namespace pfeife
