// A graph with its nodes in another order of execution. Which orders are worth it is the business
// of planner/cost/layers/linear_order.h; that in-place operators stay in place is, too.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/model/graph.h"

namespace pfeife {

/// Why `order` ([position] number of a node of `graph`) is no order of its nodes: a number is
/// missing or out of range, or a node would run before one whose result it reads. "" = it is one.
std::string no_order_because(const Graph& graph, const std::vector<NodeId>& order);

/// The graph whose node i is node order[i] of `graph`; values keep their numbers. `order` must be
/// one.
Graph reordered(const Graph& graph, const std::vector<NodeId>& order);

}  // namespace pfeife
