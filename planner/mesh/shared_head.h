// The output layer of a pipeline whose ranks share it (vocabulary parallelism): what S and T of
// each rank cost, from the shapes of a p-th of the words, and what their collectives do.
//
// S has the product with the rank's words, their maximum and sum; with one barrier also the product
// for the gradient of the input, as Yeung et al. 2024 do it ("Balancing Pipeline Parallelism with
// Vocabulary Parallelism", algorithm 2; with two barriers algorithm 1). T has the rest of the
// backward. The norm before the output layer is computed by every rank. The input embedding stays
// on the first stage.
#pragma once

#include "planner/ir/schedule/stage_costs.h"
#include "planner/mesh/mesh_layers.h"

namespace pfeife {

/// Errors: ConfigError without a place where ranks cannot share the output layer: one rank, other
/// axes than pp and dp, several stages a rank, ZeRO.
void check_shared_head(const MeshRun& run);

/// The layers of a run whose embedding and output layer, its first and last, cost nothing.
MeshLayers without_vocabulary_layers(MeshLayers pieces);

/// Adds the shares to the costs of stages of without_vocabulary_layers(): times, parameters with
/// their gradients and the optimizer's state, what S keeps for T, and the collectives of
/// `barriers`. `stops`: the gradient of the output layer's input is reduced within T, since nothing
/// runs beside it (`interlaced`).
void add_vocabulary_shares(StageCosts& costs, const MeshRun& run, const Network& network,
                           std::size_t barriers, bool stops);

}  // namespace pfeife
