// Nodes that every stage runs for itself instead of being sent their results.
#pragma once

#include <vector>

#include "planner/cost/operators/graph_facts.h"

namespace pfeife {

/// [node] true if no value of it is sent: the free nodes of graph_split.h by the table of
/// operators.
std::vector<bool> local_nodes(const GraphFacts& facts);

}  // namespace pfeife
