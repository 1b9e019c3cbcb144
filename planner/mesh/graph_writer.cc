#include "planner/mesh/graph_writer.h"

#include "planner/ir/model/gradient_flow.h"

namespace pfeife {

TensorType dense_tensor(Sizes sizes, DType type) {
  TensorType tensor{type, std::move(sizes), {}, 0};
  tensor.strides.assign(tensor.sizes.size(), 1);
  for (std::size_t d = tensor.sizes.size(); d-- > 1;)
    tensor.strides[d - 1] = tensor.strides[d] * tensor.sizes[d];
  return tensor;
}

ValueId GraphWriter::add(const std::string& name, ValueRole role, TensorType type) {
  graph_.values.push_back({.name = name, .role = role, .type = std::move(type)});
  return ValueId{graph_.values.size() - 1};
}

ValueId GraphWriter::input(const std::string& name, Sizes sizes, DType type) {
  graph_.inputs.push_back(add(name, ValueRole::Input, dense_tensor(std::move(sizes), type)));
  return graph_.inputs.back();
}

ValueId GraphWriter::parameter(const std::string& name, Sizes sizes) {
  const ParameterId id{graph_.parameters.size()};
  const TensorType type = dense_tensor(std::move(sizes), type_);
  const ValueId value = add(module_ + "." + name, ValueRole::Parameter, type);
  graph_.values[value.index()].parameter = id;
  graph_.values[value.index()].requires_grad = true;
  graph_.parameters.push_back({{module_ + "." + name}, value, type, true});
  return value;
}

ValueId GraphWriter::call(const std::string& name, const std::string& op,
                          std::vector<Argument> arguments, Sizes result) {
  return call(name, op, std::move(arguments), dense_tensor(std::move(result), type_));
}

ValueId GraphWriter::call(const std::string& name, const std::string& op,
                          std::vector<Argument> arguments, TensorType result) {
  return call_many(name, op, std::move(arguments), {std::move(result)}).front();
}

std::vector<ValueId> GraphWriter::call_many(const std::string& name, const std::string& op,
                                            std::vector<Argument> arguments,
                                            std::vector<TensorType> results) {
  Node node{.name = module_ + "." + name, .op = op, .arguments = std::move(arguments)};
  node.module_path = module_;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string number = i == 0 ? "" : "." + std::to_string(i);
    const ValueId v = add(node.name + number, ValueRole::Intermediate, std::move(results[i]));
    graph_.values[v.index()].producer = NodeId{graph_.nodes.size()};
    node.outputs.push_back(v);
  }
  graph_.nodes.push_back(node);
  return node.outputs;
}

ValueId GraphWriter::view(ValueId of, const std::string& op, Sizes sizes, Sizes strides) {
  TensorType viewed{type(of).dtype, std::move(sizes), std::move(strides), 0};
  return call(op.substr(op.rfind(':') + 1) + "_" + std::to_string(graph_.nodes.size()), op,
              {{"self", of}}, std::move(viewed));
}

Graph GraphWriter::finish(ValueId loss, std::int64_t microbatch_size) {
  graph_.outputs = {loss};
  graph_.microbatch_size = microbatch_size;
  propagate_requires_grad(graph_);
  return std::move(graph_);
}

}  // namespace pfeife
