// Replicas of a pipeline whose layers are known: what their collectives and what they divide change
// of the layers' costs.
//
// Gradients travel in the type in which they are held, in buckets of 25 MiB (torch's DDP), by a
// ring. With ZeRO 3 each layer is a unit (sharded_parameters.h). Not modelled: what ZeRO 2 reduces
// between microbatches, and what a runtime spends besides, as on many small gathers.
#pragma once

#include "planner/ir/machine/cluster.h"
#include "planner/ir/machine/replicas.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// The layers of one of the pipelines; unchanged for one replica. Errors: RefusedWish if pairs of
/// the cluster's devices are not all alike, as it is then not known which of them are one rank's
/// replicas.
Layers replicated(Layers layers, const Replicas& replicas, const Cluster& cluster);

/// The cluster as one of the pipelines sees it: links that pairs of other devices cross, too, carry
/// what all of them send (Link::alike). Unchanged for one replica.
Cluster shared_by_replicas(Cluster cluster, const Replicas& replicas);

}  // namespace pfeife
