// The first half of grouping: which layer each node belongs to.
#pragma once

#include <vector>

#include "planner/cost/operators/graph_facts.h"
#include "planner/cost/operators/liveness.h"

namespace pfeife {

struct NodeLayers {
  std::vector<std::size_t> layer;  ///< [node]
  std::size_t count = 0;
};

/// Closes a layer after each node that is not local and in `grows`, and after the nodes right
/// behind it that write into what earlier nodes made (the addition and the activation at the end of
/// a residual block). What follows the last of them, be it nothing but the model's result, is the
/// last layer. A local node goes to the layer of the
/// first node that needs it (reads its result or, later, the storage it writes), one that nobody
/// needs to the layer around it. Linear.
NodeLayers layer_of_node(const GraphFacts& facts, const std::vector<bool>& local,
                         const std::vector<bool>& grows);

}  // namespace pfeife
