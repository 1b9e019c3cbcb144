// What autograd keeps between forward and backward.
//
// Rules by operator (Keeps in operators.h), checked against
// torch.autograd.graph.saved_tensors_hooks on small models. A storage counts once however many
// nodes keep it; parameters and buffers do not count. Not modelled: the allocator's rounding,
// workspaces of library calls.
#pragma once

#include "planner/cost/aliasing.h"
#include "planner/ir/graph.h"
#include "planner/ir/profile.h"

namespace pfeife {

struct SavedMemory {
  std::vector<SavedStorage> storages;  ///< in order of their first saver
  std::vector<Bytes> own;              ///< [node] kept besides: masks, statistics, copies
  std::vector<Bytes> weight_own;       ///< [node] kept from I to W besides: gradients that came in
};

/// Applies the rules to every node whose result needs a gradient. `precision` decides the bytes:
/// under autocast the operands of products are kept in 16 bits. On a CPU (`cpu`) a dropout mask
/// takes 4 B an element, on a GPU 1 B.
SavedMemory saved_memory(const Graph& graph, const Aliasing& aliases, Precision precision,
                         bool cpu);

}  // namespace pfeife
