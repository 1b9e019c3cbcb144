// What a call of an operator costs, as a user says it: formulas over the sizes of its tensors.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/model/graph.h"

namespace pfeife {

/// What every node that calls `op` costs in one forward pass; backward costs as much again for each
/// tensor that it reads and that needs a gradient.
struct OperatorCost {
  std::string op;            ///< "my::op"
  std::string flops = "0";   ///< formula
  std::string bytes = "io";  ///< formula, or io: all that it reads and writes, once
  friend bool operator==(const OperatorCost&, const OperatorCost&) = default;
};

/// The value of a formula: numbers, + - * /, parentheses, and these names, where a node's tensors
/// are in0, in1, ... as it reads them and out0, out1, ... as it returns them:
/// - in0, out0: the number of elements;
/// - in0_d1: the size of dimension 1 (from 0);
/// - m, n, k: rows and columns of out0 (n its last size, m its elements / n), last size of in0.
/// ConfigError without a place if it is none, or names what the node does not have; never below 0.
double formula_value(const std::string& formula, const Graph& graph, const Node& node);

/// Refuses what is no formula whatever the node: ConfigError without a place.
void check_formula(const std::string& formula);

}  // namespace pfeife
