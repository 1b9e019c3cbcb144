// Operators of a graph of which nobody says what they cost.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/cost/operators/graph_facts.h"
#include "planner/ir/model/operator_cost.h"

namespace pfeife {

/// What the nodes of one operator may be worth that has neither a row nor a cost.
struct UncostedOperator {
  std::string op;
  std::size_t nodes = 0;
  std::string first;        ///< name of its first node
  std::string module_path;  ///< of that node
  bool reads_parameters = false;
  double of_bytes = 0;  ///< their share of the bytes that the forward pass moves
  /// Their share of its FLOPs if each were a product of what it reads with its parameters (2 x rows
  /// of the first tensor read x elements of the parameters); a product's FLOPs at most, unless it
  /// uses its parameters several times.
  double of_flops = 0;

  /// Reads parameters, or moves more than 0.1 % of the bytes.
  bool matters() const { return reads_parameters || of_bytes > 0.001; }
  /// The larger of its shares is above 1 %.
  bool decides() const { return of_bytes > 0.01 || of_flops > 0.01; }
};

/// By name. Operators in `costs` are not among them. Linear.
std::vector<UncostedOperator> uncosted_operators(const FactsByPrecision& graph,
                                                 std::span<const OperatorCost> costs);

/// "my::op (3 nodes, the first is 'op_1' in layers.0) has no cost: ... ", with what to do.
std::string to_string(const UncostedOperator& uncosted);

}  // namespace pfeife
