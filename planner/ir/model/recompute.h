// What a plan may compute again, as it is asked for.
#pragma once

#include <cstdint>
#include <string>

namespace pfeife {

/// What may compute its forward again in backward instead of keeping what it saves.
enum class Recompute : std::uint8_t {
  None,
  Full,       ///< every stage, or every layer of a mesh's
  Choose,     ///< each stage for itself, where memory needs it
  Blocks,     ///< any blocks of the model, where memory needs it, or stages as in Choose
  Attention,  ///< as Blocks, of the blocks that attend alone
  IfNeeded,   ///< nothing, or as Choose where memory may bind
};
/// "none", "if_needed": as a config writes it.
std::string to_string(Recompute recompute);

/// What is recomputed is part of the choice.
inline bool is_chosen(Recompute recompute) {
  return recompute == Recompute::Choose || recompute == Recompute::Blocks;
}

}  // namespace pfeife
