// What a graph's nodes keep and take of memory, as counted while they run.
#pragma once

#include "planner/ir/model/graph.h"
#include "planner/ir/model/profile.h"
#include "runtime/model/graph_stage.h"

namespace pfeife {

/// Measured counterparts of the fields of a Profile.
struct NodeMemory {
  std::vector<SavedStorage> storages;      ///< in order of their first saver
  std::vector<Bytes> saved, weight_saved;  ///< [node]
  std::vector<PassBytes> temporary;        ///< [node]
  Bytes kept_after_forward{0};             ///< by the allocator alone: to compare with
  Bytes kept_after_input{0};               ///< likewise between I and W

  Bytes all_saved() const;         ///< storages and `saved`
  Bytes all_weight_saved() const;  ///< likewise from I to W
};

/// Runs two microbatches through `joint` (F, B) and one through `split` (F, I, W), whole-model
/// stages over the same tensors whose gradients must be there already. `begin` of both must have
/// been called with a microbatch 0. Needs count_allocations().
///
/// Saved: storages that autograd keeps in the joint stage, parameters and buffers left out; one
/// that a value of the graph allocated is a SavedStorage of that value, all others belong to the
/// node. Weight-saved: what the split stage's pending weight gradients hold. Temporary: allocated
/// and freed again within the pass; in F, above what it and earlier nodes have kept by its end; in
/// I, all that it allocates but for what the node and later ones keep for W.
NodeMemory measure_memory(const Graph& graph, const RankTensors& tensors, const StepInputs& inputs,
                          GraphStage& joint, GraphStage& split);

}  // namespace pfeife
