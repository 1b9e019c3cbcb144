// The output layer of a pipeline whose p ranks share it (vocabulary parallelism): costs of the
// passes S and T of each rank, which has 1/p of the vocabulary, and of their collectives.
//
// S computes the rank's logits, their maximum and the sum of their exponentials; with one barrier
// also the gradient of the output layer's input (Yeung et al. 2024, "Balancing Pipeline Parallelism
// with Vocabulary Parallelism", algorithm 2; with two barriers algorithm 1). T computes the rest of
// the backward. Every rank computes the norm before the output layer. The input embedding is
// divided likewise; its passes are part of T.
#pragma once

#include "planner/ir/schedule/stage_costs.h"
#include "planner/mesh/mesh_layers.h"

namespace pfeife {

/// Errors: ConfigError without file and line where ranks cannot share the output layer: one rank,
/// other axes than pp and dp, several stages a rank, ZeRO.
void check_shared_head(const MeshRun& run);

/// `pieces` with the costs of the first layer (embedding) and the last (output layer) set to 0.
MeshLayers without_vocabulary_layers(MeshLayers pieces);

/// Adds each rank's share of both layers to stage costs of without_vocabulary_layers(): times,
/// parameters with gradients and optimizer's state, what S keeps for T, and the collectives of one
/// or two `barriers`. `stops`: T includes the all-reduce of the input's gradient, as nothing runs
/// beside it (`interlaced`).
void add_vocabulary_shares(StageCosts& costs, const MeshRun& run, const Network& network,
                           std::size_t barriers, bool stops);

}  // namespace pfeife
