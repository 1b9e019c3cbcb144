// The layers of one rank of a mesh, with collectives in their times.
//
// Collectives within the graph (tp, cp, ep) stop the rank: they are exposed. One is not: what a
// sequence-parallel rank gathers for a product is not kept; backward gathers it again while it
// computes the gradient of the product's input (Korthikanti et al. 2023, sec. 4.2.2).
#pragma once

#include "planner/ir/layers.h"
#include "planner/ir/network.h"
#include "planner/mesh/collective.h"
#include "planner/mesh/mesh_run.h"

namespace pfeife {

struct MeshLayers {
  Layers layers;                    ///< a layer for each piece of rank_graph(), in its order
  std::vector<LayerRange> blocks;   ///< each recomputed by itself
  std::vector<std::int32_t> first;  ///< [transformer layer] its first layer here
};

/// Times of `network`'s device by the roofline and of its links by collective_time(). Parameters
/// have 2 bytes an element, gradients 4 and the optimizer's state 12 (fp32 master and two moments):
/// 18 together (Korthikanti et al. 2023); ZeRO divides the last two. The run must be checked.
MeshLayers mesh_layers(const MeshRun& run, const Network& network);

/// The groups that reduce a parameter's gradient: dp x cp, for experts of several ranks a part.
GroupShape gradient_group(const MeshRun& run, const LayerParameter& parameter,
                          const Network& network);

}  // namespace pfeife
