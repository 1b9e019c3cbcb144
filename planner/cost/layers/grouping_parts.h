// The steps of grouping.cc; each is in a source of its name.
#pragma once

#include <string>
#include <vector>

#include "planner/cost/operators/graph_facts.h"
#include "planner/cost/operators/liveness.h"
#include "planner/ir/model/graph.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

// Nodes that every stage runs for itself instead of being sent their results.

/// [node] true if no value of it is sent: the free nodes of graph_split.h by the table of
/// operators.
std::vector<bool> local_nodes(const GraphFacts& facts);

// Where calls of submodules begin and end in the order of a graph, and where one value is all that
// passes on: the borders of a model's blocks.

/// Between a node that is not local and the next one that is not.
struct NodeBorder {
  std::string ended;  ///< outermost module whose only call ends here; "" = none
  std::string begun;  ///< outermost module whose only call begins here; "" = none
  /// A single value that an operator made, of those that a later one reads, and nobody writes into
  /// it later: no residual passes.
  bool one_value = false;

  bool between_blocks() const { return one_value && !(ended.empty() && begun.empty()); }
};

/// [node] the border behind it; of local nodes and the last one an empty one. A
/// module is known by the path of one of its own operators, and its calls by runs of nodes: two
/// calls one right after the other are taken as one. Linear in nodes x depth of modules.
std::vector<NodeBorder> module_borders(const GraphFacts& facts, const std::vector<bool>& local);

// The first half of grouping: which layer each node belongs to, and what that makes of temporaries.

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

/// [layer] How far a layer rises above all that it saves (F, B), saves and weight-saves (I) or
/// weight-saves (W): while one of its nodes runs, what later ones of them save is not there yet, or
/// no longer; in I, W needs nothing of earlier ones yet. Linear.
std::vector<PassBytes> layer_temporary(const Graph& graph, const Profile& profile,
                                       const NodeLayers& layers);

}  // namespace pfeife
