// The layers of one rank of a mesh, with collectives in their times.
//
// Collectives within the graph (tp, cp, ep) stop the rank: they are exposed. One is not: what a
// sequence-parallel rank gathers for a product is not kept; backward gathers it again while it
// computes the gradient of the product's input (Korthikanti et al. 2023, sec. 4.2.2).
#pragma once

#include <set>
#include <string>

#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/machine/network.h"
#include "planner/ir/model/layers.h"
#include "planner/mesh/collective.h"

namespace pfeife {

struct MeshLayers {
  Layers layers;                       ///< a layer for each piece of rank_graph(), in its order
  std::vector<Nanoseconds> reduction;  ///< [parameter] of its gradient
  std::vector<bool> behind;            ///< [parameter] that is in its optimizer time
  std::vector<LayerRange> blocks;      ///< each recomputed by itself
  std::vector<std::int32_t> first;     ///< [transformer layer] its first layer here
  std::vector<bool> of_experts;        ///< [parameter]
  std::set<std::string> cast_weights;  ///< as cast_weights() says
  std::vector<bool> cast;              ///< [parameter] held in the run's format
  Bytes placeholders;                  ///< of RankKernels::Megatron, in place of weight gradients
};

/// Times of `network`'s device by the roofline, or as measured where the network has that
/// (measured_pieces.h), and of its links by collective_time(). Each distinct
/// layer is priced once. Parameters have 2 bytes an element, gradients 4, and the optimizer's
/// state what optimizer_work() says: of Adam 12 (fp32 master and two moments), 18 together
/// (Korthikanti et al. 2023). ZeRO divides the last two, and with 3 the first
/// (sharded_parameters.h); of Muon by whole matrices. Weights of a run in a format have what its
/// recipe holds of them, and are cast with each optimizer step. Gradients are reduced at the rate
/// of a message of all that a rank has on average: before the optimizer step, or beside the last
/// backward (MeshRun::overlap_reductions, Layers::reductions). What several layers use is reduced
/// before the optimizer step in any case: other ranks may have gradients of it, too. The run must
/// be checked.
MeshLayers mesh_layers(const MeshRun& run, const Network& network);

/// The first half of that, which pp, dp (but for where experts are) and zero do not change.
MeshLayers rank_layers(const MeshRun& run, const Network& network);
/// The same without repeating: slow, to check the other.
MeshLayers priced_layer_by_layer(const MeshRun& run, const Network& network);
/// The second half, once: gradients, optimizer's state and their times, and what is recomputed.
void divide_state(MeshLayers& pieces, const MeshRun& run, const Network& network);

/// The distinct products and fused attentions of all layers on one rank of each stage.
std::vector<ProductUse> mesh_products(const MeshRun& run, const Network& network);

/// What that would make of all parameters together, without making it.
struct StateSums {
  Bytes fixed;               ///< parameters, gradients and state
  Nanoseconds optimizer{0};  ///< with the reductions that are exposed wherever the cuts lie
  std::vector<LayerReduction> reductions;  ///< as Layers::reductions
};
StateSums divided_state(const MeshLayers& pieces, const MeshRun& run, const Network& network);

/// The groups that reduce a parameter's gradient: dp x cp, for experts of several ranks a part.
GroupShape gradient_group(const MeshRun& run, bool of_experts, const Network& network);

}  // namespace pfeife
