// Bytes that are held besides what autograd keeps, while the graph runs node by node.
//
// A storage lives from the node that allocates it to the last node that reads it; its gradient, on
// the way back, from the last reader to the node that made it. The whole graph is taken as one
// stage: what a long skip holds over a stage that neither makes nor reads it is charged there too.
#pragma once

#include "planner/cost/operators/graph_facts.h"
#include "planner/cost/operators/saved.h"

namespace pfeife {

/// [node] the bytes held at most while the node runs besides `saved`: in F, the storages alive that
/// nobody keeps; in B, the gradients alive and those of the node's own parameters before they are
/// added to the parameters' (under autocast in 16 bits and in fp32); in I, the same but for what W
/// does and for the gradient that W keeps; in W, the gradients of the node's own parameters that it
/// makes. Linear.
std::vector<PassBytes> temporary_bytes(const GraphFacts& facts, const SavedMemory& saved);

/// [value] the value whose gradient is the same tensor: where an operator hands its incoming
/// gradient on as it is to a value that gets no other. Linear.
std::vector<ValueId> gradient_tensors(const GraphFacts& facts);

/// [node] true if the bytes allocated (storages alive, and all that is kept) are more after the
/// node than before it. Storages that a node of `ignored` allocates do not count. Linear.
std::vector<bool> grows_memory(const GraphFacts& facts, const SavedMemory& saved,
                               const std::vector<bool>& ignored);

}  // namespace pfeife
