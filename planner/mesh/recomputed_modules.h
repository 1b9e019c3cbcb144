// Modules of a layer that are computed again in backward, as Megatron-LM's selective recomputation
// has them, as other costs of the graph's nodes: whoever reckons with them needs to know nothing of
// it. Internal to planner/mesh.
//
// Checkpointed (core_attn, mlp, moe, shared_experts): a module keeps what enters it; its forward
// runs again, whole, before its backward. What leaves it is kept by others as ever. Discarded
// (mla_up_proj, layernorm, moe_act): others do not keep what leaves it either; it is there again
// from the first backward that needs it until the module's own is done. Source: Megatron-LM core
// 0.17, transformer_layer.py, multi_latent_attention.py, moe_layer.py, experts.py, and
// tensor_parallel/random.py (CheckpointWithoutOutput).
#pragma once

#include <set>
#include <span>

#include "planner/cost/operators/graph_facts.h"
#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/model/layers.h"
#include "planner/mesh/rank_graph.h"

namespace pfeife {

/// The outermost of those modules that the run recomputes, in order.
std::vector<ModuleNodes> chosen_modules(const RankGraph& rank, const MeshRun& run);

/// Values that are made in discarded modules.
std::set<ValueId> discarded_values(const Graph& graph, std::span<const ModuleNodes> modules);

/// Rewrites `profile`, and `collectives` [node], of the graph with each module recomputed. Times of
/// nodes have collectives in them.
void recompute_modules(Profile& profile, std::vector<LayerCollectives>& collectives,
                       const GraphFacts& facts, std::span<const ModuleNodes> modules);

}  // namespace pfeife
