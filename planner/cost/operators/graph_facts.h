// A graph with all that the cost rules derive from it alone, computed once.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "planner/cost/operators/aliasing.h"
#include "planner/cost/operators/operators.h"
#include "planner/ir/model/graph.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// Borrows the graph.
class GraphFacts {
 public:
  GraphFacts(const Graph& graph, Precision precision);

  const Graph& graph;
  const std::optional<DType> narrow;          ///< the type that autocast casts to, if it runs
  std::vector<const OperatorTraits*> traits;  ///< [node] nullptr = no row, or a row whose operands
                                              ///< the call does not name
  std::vector<DType> types;                   ///< [value] as it runs
  Aliasing aliases;

  const Node& node(NodeId n) const { return graph.nodes[n.index()]; }
  const TensorType& type(ValueId v) const { return graph.values[v.index()].type; }
  /// Every value the node reads, in argument order; a value may occur twice.
  std::span<const ValueId> inputs(NodeId n) const {
    return {inputs_.data() + input_begin_[n.index()], inputs_.data() + input_begin_[n.index() + 1]};
  }
  /// The same without the second occurrence of a value.
  std::vector<ValueId> distinct_inputs(NodeId n) const;

  ValueId storage(ValueId v) const { return aliases.storage[v.index()]; }
  /// Role of the value that allocated the storage: a view of a parameter counts as one.
  ValueRole role(ValueId v) const { return graph.values[storage(v).index()].role; }
  bool is_parameter(ValueId v) const { return role(v) == ValueRole::Parameter; }
  bool needs_gradient(ValueId v) const {
    return v.value >= 0 && graph.values[v.index()].requires_grad;
  }
  /// True if autograd records the node.
  bool gives_gradient(NodeId n) const;
  /// True if the result is its first argument's storage without having been written: no work.
  bool is_view(NodeId n) const;

  /// Size of all elements, in the running type.
  Bytes bytes(ValueId v) const;
  /// Size of what reading it moves: dimensions that repeat (stride 0) count once.
  Bytes read_bytes(ValueId v) const;
  Bytes input_bytes(NodeId n) const;   ///< read_bytes of the distinct inputs
  Bytes output_bytes(NodeId n) const;  ///< bytes of all outputs

  /// The type autocast casts operand `v` of the node to; nothing if it is used as it is.
  std::optional<DType> cast_type(NodeId n, ValueId v) const;
  /// Size of the copy that the operator makes of an operand before it works on it, and of which
  /// autograd keeps the copy: casts, batch dimensions of products that cannot be folded by a view,
  /// group norm of a tensor that is not dense. 0 = none.
  Bytes operand_copy(NodeId n, ValueId v) const;

 private:
  bool folds_by_copy(NodeId n, ValueId v) const;

  std::vector<ValueId> inputs_;
  std::vector<std::size_t> input_begin_;
};

/// A graph whose facts are made when they are first asked for, once for all precisions that run in
/// the same types: passed on instead of the graph, it shares them. Borrows the graph. For one
/// thread.
class FactsByPrecision {
 public:
  FactsByPrecision(const Graph& of) : graph(of) {}  ///< implicit: a graph will do

  const Graph& graph;
  const GraphFacts& at(Precision precision) const;

 private:
  mutable std::map<std::optional<DType>, GraphFacts> facts_;  // by the 16-bit type of autocast
};

/// Nodes in order: for (NodeId n : nodes_of(graph)).
std::vector<NodeId> nodes_of(const Graph& graph);

}  // namespace pfeife
