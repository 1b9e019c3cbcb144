// Where calls of submodules begin and end in the order of a graph, and where one value is all that
// passes on: the borders of a model's blocks.
#pragma once

#include <string>
#include <vector>

#include "planner/cost/operators/graph_facts.h"

namespace pfeife {

/// Between a node that is not local and the next one that is not.
struct NodeBorder {
  std::string ended;  ///< outermost module whose only call ends here; "" = none
  std::string begun;  ///< outermost module whose only call begins here; "" = none
  /// A single value that an operator made, of those that a later one reads, and nobody writes into
  /// it later: no residual passes.
  bool one_value = false;

  bool between_blocks() const { return one_value && !(ended.empty() && begun.empty()); }
};

/// [node] the border behind it; of local nodes (local_nodes.h) and the last one an empty one. A
/// module is known by the path of one of its own operators, and its calls by runs of nodes: two
/// calls one right after the other are taken as one. Linear in nodes x depth of modules.
std::vector<NodeBorder> module_borders(const GraphFacts& facts, const std::vector<bool>& local);

}  // namespace pfeife
