// What the nodes of a graph do besides returning tensors, by the operator table: without LibTorch,
// whose schemas say it to the runtime.
#pragma once

#include <vector>

#include "planner/ir/model/graph.h"
#include "planner/ir/model/node_effects.h"

namespace pfeife {

/// [node] What may be a view is one. An operator without a row writes into its first argument if
/// its name ends in '_', and into its argument `out`, and else makes tensors of its own.
std::vector<NodeEffects> table_effects(const Graph& graph);

}  // namespace pfeife
