// ZeRO 3 (FSDP): replicas divide the parameters, too.
//
// A unit's parameters are gathered before its forward and again before its backward, while the unit
// before it in that pass computes; its gradients are reduced and scattered in each microbatch's
// backward, while the next unit computes. What takes longer than that is exposed. Not modelled:
// that recomputing a whole layer needs no second exposed gather.
#pragma once

#include <span>

#include "planner/mesh/mesh_layers.h"

namespace pfeife {

/// What is gathered and scattered together.
struct ShardedUnit {
  Bytes parameters{0}, gradients{0};    ///< whole
  Nanoseconds gather{0}, scatter{0};    ///< once
  Nanoseconds forward{0}, backward{0};  ///< that others' gathers and scatters run beside
};
struct UnitSharding {
  Nanoseconds forward{0}, backward{0};  ///< exposed, each microbatch
  PassBytes held;  ///< while the unit runs: its own parameters and those gathered meanwhile, and in
                   ///< backward its gradients
};
/// [unit], in the order of the forward pass.
std::vector<UnitSharding> sharding_of(std::span<const ShardedUnit> units);

/// Adds that to layers whose parameters are whole so far; a unit is a transformer layer, the
/// embedding or the head. Exposed times count as collectives.
void add_sharding(MeshLayers& pieces, const MeshRun& run, const Network& network);

}  // namespace pfeife
