// What autograd keeps between forward and backward, and what of it the weight half needs.
//
// Rules by operator (Keeps in operators.h), checked against
// torch.autograd.graph.saved_tensors_hooks on small models. A storage counts once however many
// nodes keep it; parameters, buffers and constants do not count. Not modelled: the allocator's
// rounding, workspaces of library calls.
#pragma once

#include "planner/cost/operators/graph_facts.h"
#include "planner/ir/machine/cluster.h"

namespace pfeife {

struct SavedMemory {
  std::vector<SavedStorage> storages;    ///< in order of their first saver
  std::vector<Bytes> node_bytes;         ///< [node] kept besides: masks, statistics, copies
  std::vector<Bytes> node_weight_bytes;  ///< [node] kept from I to W besides: gradients, copies
};

/// Applies the rules to every node whose result needs a gradient. Linear but for look-ups.
///
/// Differences between devices: a dropout mask takes an element of the tensor's type on a CPU and a
/// byte on a GPU; attention with dropout is computed by parts on a CPU (`math`), which keeps the
/// scores, and fused on a GPU.
/// Autocast: what is kept is the cast copy, one for each node that reads the tensor, but one for
/// all nodes that read a parameter (autocast's cache): a storage whose `value` is the parameter.
/// Weight half: W of a product, convolution or embedding with a trainable table needs the operand
/// that multiplies, and the incoming gradient; so does W of grouped products and of einsums of two
/// (product_gradients.h). Gradients of all other parameters (norms, scales,
/// added positions) are made together with dI.
SavedMemory saved_memory(const GraphFacts& facts, DeviceType device);

/// True if the gradient of operand `v` of node `n` is left to W.
bool deferred_to_weight(const GraphFacts& facts, NodeId n, ValueId v);

/// True if attention runs by parts and keeps its scores.
bool attention_by_parts(const Node& node, DeviceType device);

}  // namespace pfeife
