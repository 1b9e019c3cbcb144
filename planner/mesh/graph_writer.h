// Writing a graph node by node. Internal to planner/mesh.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/ir/model/graph.h"

namespace pfeife {

using Sizes = std::vector<std::int64_t>;

/// Dense, row-major.
TensorType dense_tensor(Sizes sizes, DType type);

class GraphWriter {
 public:
  GraphWriter(std::string name, DType type) : type_(type) { graph_.name = std::move(name); }

  /// The module of the nodes that follow.
  void enter(std::string module_path) { module_ = std::move(module_path); }
  ValueId input(const std::string& name, Sizes sizes, DType type);
  /// Named `module.name`.
  ValueId parameter(const std::string& name, Sizes sizes);
  /// A dense result of the graph's type.
  ValueId call(const std::string& name, const std::string& op, std::vector<Argument> arguments,
               Sizes result);
  ValueId call(const std::string& name, const std::string& op, std::vector<Argument> arguments,
               TensorType result);
  std::vector<ValueId> call_many(const std::string& name, const std::string& op,
                                 std::vector<Argument> arguments, std::vector<TensorType> results);
  /// The same storage with other sizes and strides.
  ValueId view(ValueId of, const std::string& op, Sizes sizes, Sizes strides);

  const TensorType& type(ValueId v) const { return graph_.value(v).type; }
  NodeId last() const { return NodeId{graph_.nodes.size() - 1}; }
  DType element() const { return type_; }
  /// The graph with gradients propagated; `loss` is its output.
  Graph finish(ValueId loss, std::int64_t microbatch_size);

 private:
  ValueId add(const std::string& name, ValueRole role, TensorType type);

  Graph graph_;
  DType type_;
  std::string module_;
};

}  // namespace pfeife
