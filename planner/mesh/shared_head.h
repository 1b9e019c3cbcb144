// The output layer of a pipeline whose p ranks share it (vocabulary parallelism): what each rank,
// which has 1/p of the words, does and holds of it.
//
// Every rank computes the norm before the output layer. The input embedding is divided likewise,
// tied to the output layer or not. Gradients of the share are reduced over dp before the optimizer
// step, beside nothing.
#pragma once

#include <string>

#include "planner/ir/model/layers.h"
#include "planner/mesh/mesh_layers.h"

namespace pfeife {

/// Why ranks cannot share the output layer, with the remedy: one rank, other axes than pp and dp,
/// several stages a rank, ZeRO. "" = they can.
std::string undivided_because(const MeshRun& run);

/// The share of one rank from shapes: the layers of a model with 1/p of the words, and collectives
/// among the p ranks. `layers`: of the run's mesh_layers(). Ranks must be able to share the output
/// layer.
WordShare word_share(const MeshRun& run, const Layers& layers, const Network& network);

}  // namespace pfeife
