// What a plan may compute again, as it is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pfeife {

/// What may compute its forward again in backward instead of keeping what it saves.
enum class Recompute : std::uint8_t {
  None,
  Full,       ///< every stage, or every layer of a mesh's
  Choose,     ///< each stage for itself, where memory needs it
  Blocks,     ///< any blocks of the model, where memory needs it, or stages as in Choose
  Attention,  ///< as Blocks, of the blocks that attend alone
  IfNeeded,   ///< nothing, or as Choose where memory may bind
  Selective,  ///< modules of every layer of a mesh's
};
/// "none", "if_needed": as a config writes it.
std::string to_string(Recompute recompute);

/// A module of every layer of a mesh that has it, as Megatron-LM's --recompute-modules names them.
enum class Module : std::uint8_t {
  Norm,              ///< "layernorm": of a mixer and of a feed-forward part
  ExpertActivation,  ///< "moe_act": between the products of experts
  LatentUp,          ///< "mla_up_proj": queries, keys and values from compressed ones, rotated
  CoreAttention,     ///< "core_attn"
  SharedExperts,     ///< "shared_experts"
  FeedForward,       ///< "mlp": of layers without experts
  Experts,           ///< "moe": router, dispatch, experts, combination, shared experts
};
std::string to_string(Module module);
/// In the order of bytes freed for the time that they take, about.
const std::vector<Module>& all_modules();
/// Whether what leaves the module is not kept either (Megatron-LM's output-discarding checkpoint).
bool is_discarded(Module module);

/// What is recomputed is part of the choice.
inline bool is_chosen(Recompute recompute) {
  return recompute == Recompute::Choose || recompute == Recompute::Blocks;
}

}  // namespace pfeife
