// Small graphs made by hand, for tests of the cost rules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/ir/model/gradient_flow.h"
#include "planner/ir/model/graph.h"

namespace pfeife::testing {

using Sizes = std::vector<std::int64_t>;

/// Dense, row-major.
inline TensorType dense(Sizes sizes, DType dtype = DType::Float32) {
  TensorType type{dtype, std::move(sizes), {}, 0};
  type.strides.assign(type.sizes.size(), 1);
  for (std::size_t d = type.sizes.size(); d-- > 1;)
    type.strides[d - 1] = type.strides[d] * type.sizes[d];
  return type;
}
inline TensorType strided(Sizes sizes, Sizes strides, DType dtype = DType::Float32) {
  return {dtype, std::move(sizes), std::move(strides), 0};
}

class GraphBuilder {
 public:
  ValueId input(const std::string& name, TensorType type) {
    graph_.inputs.push_back(add(name, ValueRole::Input, std::move(type)));
    return graph_.inputs.back();
  }
  ValueId parameter(const std::string& name, TensorType type, bool trainable = true) {
    const ParameterId id{graph_.parameters.size()};
    const ValueId value = add(name, ValueRole::Parameter, type);
    graph_.values[value.index()].parameter = id;
    graph_.values[value.index()].requires_grad = trainable;
    graph_.parameters.push_back({{name}, value, std::move(type), trainable});
    return value;
  }
  ValueId buffer(const std::string& name, TensorType type) {
    return add(name, ValueRole::Buffer, std::move(type));
  }

  /// A call with one result, called `name` like its node.
  ValueId call(const std::string& name, const std::string& op, std::vector<Argument> arguments,
               TensorType result) {
    return call_many(name, op, std::move(arguments), {std::move(result)}).front();
  }
  /// A call with several results.
  std::vector<ValueId> call_many(const std::string& name, const std::string& op,
                                 std::vector<Argument> arguments, std::vector<TensorType> results) {
    Node node{.name = name, .op = "aten::" + op, .arguments = std::move(arguments)};
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ValueId v = add(i == 0 ? name : name + "." + std::to_string(i), ValueRole::Intermediate,
                            std::move(results[i]));
      graph_.values[v.index()].producer = NodeId{graph_.nodes.size()};
      node.outputs.push_back(v);
    }
    graph_.nodes.push_back(node);
    return node.outputs;
  }

  /// The graph with gradients propagated; the last value is its output.
  Graph build() {
    graph_.name = "hand-made";
    graph_.digest = "0123";
    graph_.outputs = {ValueId{graph_.values.size() - 1}};
    propagate_requires_grad(graph_);
    return graph_;
  }

 private:
  ValueId add(const std::string& name, ValueRole role, TensorType type) {
    graph_.values.push_back({.name = name, .role = role, .type = std::move(type)});
    return ValueId{graph_.values.size() - 1};
  }
  Graph graph_;
};

/// A graph that begins with x = data + p: an activation that needs a gradient, made by an addition,
/// which keeps nothing.
struct Start : GraphBuilder {
  explicit Start(TensorType type) {
    const ValueId data = input("data", type), p = parameter("p", type);
    x = call("x", "add", {{"self", data}, {"other", p}}, type);
  }
  ValueId x;
};

/// y = x w^T + b with x [rows, in], w [out, in].
struct LinearGraph {
  Graph graph;
  ValueId x, w, b, y;
};
/// One linear layer behind a first one, so that its input needs a gradient.
inline LinearGraph linear_graph(std::int64_t rows, std::int64_t in, std::int64_t out) {
  GraphBuilder g;
  LinearGraph made;
  const ValueId data = g.input("data", dense({rows, in}));
  const ValueId scale = g.parameter("scale", dense({in}));
  made.w = g.parameter("w", dense({out, in}));
  made.b = g.parameter("b", dense({out}));
  made.x = g.call("x", "mul", {{"self", data}, {"other", scale}}, dense({rows, in}));
  made.y = g.call("y", "linear", {{"input", made.x}, {"weight", made.w}, {"bias", made.b}},
                  dense({rows, out}));
  made.graph = g.build();
  return made;
}

}  // namespace pfeife::testing
