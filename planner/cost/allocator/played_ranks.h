// What PyTorch's allocator reserves while a plan runs: the lifetimes of every rank's tensors,
// played through its rules (caching_allocator.h).
//
// Tensors are those of the layers: parameters, gradients (from the first backward on), optimizer's
// state (from the first step on), saved storages one by one, what a layer keeps besides as one,
// values and gradients that cross cuts, and a layer's temporary bytes in two halves while it runs.
// Two steps are played: sizes repeat from then on. Blocks are recomputed as wholes, layer by layer.
// Not modelled: other streams (what is sent is free at once), workspaces of libraries, copies while
// gradients are reduced, temporaries of optimizers.
#pragma once

#include <vector>

#include "planner/ir/machine/allocator_settings.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

struct PlayedRank {
  Bytes allocated{0}, reserved{0};  ///< peaks
};

/// [rank] The schedule must be lowered. O(tensors x microbatches).
std::vector<PlayedRank> played_ranks(const Plan& plan, const Layers& layers,
                                     const AllocatorSettings& settings);

/// The layers say the lifetimes of what they keep, which is of equal sizes in all microbatches.
/// Else reserved_factor() stands for them.
inline bool has_lifetimes(const Layers& layers) {
  return !layers.storages.empty() && layers.mode == Mode::Train && layers.microbatches.empty();
}

/// What no plan goes below that keeps to whole microbatches and offloads nothing.
struct LeastReserved {
  Bytes of_each{0};     ///< by every rank
  Bytes of_fullest{0};  ///< by some rank
};

/// The segments that hold the tensors of single layers; nothing without lifetimes.
LeastReserved least_reserved(const Layers& layers, const AllocatorSettings& settings);

/// [rank] The most bytes that the allocator reserves: plan.peak_memory, plus what the replayed
/// lifetimes reserve beyond their allocated bytes, and at least least_reserved(). Without
/// lifetimes, with slices and with offloading, plan.peak_memory times reserved_factor().
/// `limit`: [rank] the memory that each rank may reserve. Ranks are then replayed in the order of
/// their distance to it, up to the first that exceeds it, and without those far below it; a rank
/// that is not replayed has its allocated peak as its result. Empty = all ranks are replayed.
std::vector<Bytes> reserved_memory(const Plan& plan, const Layers& layers,
                                   const AllocatorSettings& settings,
                                   const std::vector<Bytes>& limit = {});

}  // namespace pfeife
