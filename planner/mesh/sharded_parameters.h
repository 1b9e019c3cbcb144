// ZeRO 3 (FSDP): replicas divide the parameters, too.
//
// A unit is a transformer layer, the embedding or the head. Its parameters are gathered before its
// forward and again before its backward, while the unit before computes; its gradients are reduced
// and scattered in each microbatch's backward, while the next unit computes. What takes longer than
// that is exposed. Not modelled: that recomputing a whole layer needs no second exposed gather.
#pragma once

#include "planner/mesh/mesh_layers.h"

namespace pfeife {

/// Adds to layers whose parameters are whole so far: exposed gathers and reductions to times and
/// collectives; to what a layer holds while it runs, the gathered parameters of its unit and the
/// next, and in backward the gradients of its unit.
void add_sharding(MeshLayers& made, const MeshRun& run, const Network& network);

}  // namespace pfeife
