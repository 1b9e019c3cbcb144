#include "planner/ir/model/arguments.h"

namespace pfeife {

ValueId tensor_argument(const Node& node, const std::string& name) {
  const Argument* argument = node.find(name);
  const auto* value = argument ? std::get_if<ValueId>(&argument->value) : nullptr;
  return value ? *value : kNoValue;
}

ValueId first_tensor(const Node& node) {
  for (const Argument& argument : node.arguments) {
    if (const auto* value = std::get_if<ValueId>(&argument.value)) return *value;
    if (const auto* list = std::get_if<std::vector<ValueId>>(&argument.value);
        list && !list->empty())
      return list->front();
    if (const auto* optionals = std::get_if<std::vector<std::optional<ValueId>>>(&argument.value))
      for (const auto& value : *optionals)
        if (value) return *value;
  }
  return kNoValue;
}

double number_argument(const Node& node, const std::string& name, double otherwise) {
  const Argument* argument = node.find(name);
  if (argument == nullptr) return otherwise;
  if (const auto* real = std::get_if<double>(&argument->value)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&argument->value))
    return static_cast<double>(*whole);
  return otherwise;
}

bool flag_argument(const Node& node, const std::string& name, bool otherwise) {
  const Argument* argument = node.find(name);
  const auto* flag = argument ? std::get_if<bool>(&argument->value) : nullptr;
  return flag ? *flag : otherwise;
}

Factors factors_of(const Node& node) {
  const auto tensor = [&](const char* name) { return tensor_argument(node, name); };
  if (const ValueId batch1 = tensor("batch1"); batch1 != kNoValue)
    return {batch1, tensor("batch2"), tensor("self")};
  if (const ValueId mat = tensor("mat"); mat != kNoValue)
    return {mat, tensor("vec"), tensor("self")};
  if (const ValueId x1 = tensor("x1"); x1 != kNoValue) return {x1, tensor("x2"), kNoValue};
  if (const ValueId input1 = tensor("input1"); input1 != kNoValue)
    return {input1, tensor("weight"), tensor("bias")};
  const ValueId weight = tensor_argument(node, "weight"), mat1 = tensor_argument(node, "mat1");
  if (weight != kNoValue)
    return {tensor_argument(node, "input"), weight, tensor_argument(node, "bias")};
  if (mat1 != kNoValue) return {mat1, tensor_argument(node, "mat2"), tensor_argument(node, "self")};
  for (const char* name : {"other", "mat2", "vec", "tensor", "y"})
    if (const ValueId right = tensor(name); right != kNoValue)
      return {tensor(name[0] == 'y' ? "x" : "self"), right, tensor("bias")};
  return {tensor("self"), kNoValue, kNoValue};
}

}  // namespace pfeife
