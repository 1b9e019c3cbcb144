// The graph that one rank of a mesh runs, from a transformer's figures: operators at local shapes,
// and collectives as nodes among them.
//
// All of the model's layers are in it: the pipeline cuts it later. Collectives are operators of
// planner/cost/operators/operators.h: pfeife::all_reduce (its gradient passes),
// pfeife::all_reduce_gradient (its value passes), pfeife::all_gather and pfeife::reduce_scatter
// (each the other's gradient), pfeife::all_to_all; the argument `axis` names the mesh axis ("tp",
// "cp", "ep"). Not modelled: the two numbers a token that the ranks of a divided vocabulary
// exchange for the loss, and the number that they exchange for a norm of all their heads together.
// A rotation passes over whole heads, also where it turns a
// part of each (partial_rotary_factor).
#pragma once

#include <vector>

#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/model/architecture.h"
#include "planner/ir/model/graph.h"
#include "planner/ir/model/recompute.h"

namespace pfeife {

struct RankGraphOptions {
  std::int64_t microbatch_size = 1;  ///< sequences
  bool sequence_parallel = false;    ///< norms and dropout on a tp-th of the sequence
  DType type = DType::Float16;       ///< of parameters and activations
  bool separate_experts = false;     ///< a product's kernel an expert
  RankKernels kernels = RankKernels::Eager;
  double expert_imbalance = 1;  ///< MeshRun::expert_imbalance
};

/// What a range of layers is for.
enum class PieceKind { Embedding, BeforeAttention, Attention, AfterAttention, Head };

/// Nodes [first, last] of a piece; pieces follow one another, and a cut may be behind each.
struct Piece {
  PieceKind kind;
  std::int64_t layer = 0;  ///< of the transformer; 0 for embedding and head
  NodeId last;
};

/// Nodes [first, last] of a module of a layer.
struct ModuleNodes {
  Module module;
  NodeId first, last;
};

struct RankGraph {
  Graph graph;
  std::vector<Piece> pieces;
  /// Products of linear layers and of experts, which may run in a format: not those of the head and
  /// of routers. In order.
  std::vector<NodeId> linear;
  std::vector<ModuleNodes> modules;  ///< by their last nodes; one may be within a later one
};

/// Nodes are in modules "embedding", "layers.3.before", "layers.3.attention" (or "layers.3.mamba",
/// "layers.3.feed_forward"), "layers.3.after", "head". The mesh must divide the architecture:
/// check_mesh(). Linear in the layers.
RankGraph rank_graph(const Architecture& of, const Mesh& mesh, const RankGraphOptions& options);

/// The weight of a product of RankGraph::linear; of experts all of theirs.
ValueId linear_weight(const Node& product);

/// A collective node's axis: "tp", "cp" or "ep"; "" = the node is no collective.
std::string collective_axis(const Node& node);

}  // namespace pfeife
