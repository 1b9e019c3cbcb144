#include "planner/ir/model/graph.h"

#include <array>
#include <type_traits>
#include <utility>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

struct DTypeFacts {
  DType dtype;
  std::int64_t bytes;
  bool floating;
  const char* name;
};

// In the order of the enumeration, so that a type is its own index.
constexpr std::array<DTypeFacts, 16> kDTypes{{
    {DType::UInt8, 1, false, "uint8"},
    {DType::Int8, 1, false, "int8"},
    {DType::Int16, 2, false, "int16"},
    {DType::Int32, 4, false, "int32"},
    {DType::Int64, 8, false, "int64"},
    {DType::Float16, 2, true, "float16"},
    {DType::Float32, 4, true, "float32"},
    {DType::Float64, 8, true, "float64"},
    {DType::Complex32, 4, true, "complex32"},
    {DType::Complex64, 8, true, "complex64"},
    {DType::Complex128, 16, true, "complex128"},
    {DType::Bool, 1, false, "bool"},
    {DType::BFloat16, 2, true, "bfloat16"},
    {DType::UInt16, 2, false, "uint16"},
    {DType::Float8E4M3, 1, true, "float8_e4m3fn"},
    {DType::Float8E5M2, 1, true, "float8_e5m2"},
}};

const DTypeFacts& facts(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  PFEIFE_CHECK(index < kDTypes.size() && kDTypes[index].dtype == dtype, "dtype ", index);
  return kDTypes[index];
}

// Lists of any kind: "[a, b]".
template <class List, class Print>
std::string bracketed(const List& list, const Print& print) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ", ";
    text += print(list[i]);
  }
  return text + "]";
}

std::string printed(double number) {
  std::string text = shortest(number);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // not an integer
  return text;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }
std::string truth(bool value) { return value ? "true" : "false"; }

// Prints one argument; knows the graph for the names of its values.
struct ArgumentPrinter {
  const Graph& graph;

  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(ValueId id) const { return "%" + graph.value(id).name; }
  std::string operator()(const std::optional<ValueId>& id) const {
    return id ? (*this)(*id) : "None";
  }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(double number) const { return printed(number); }
  std::string operator()(bool value) const { return truth(value); }
  std::string operator()(const std::string& text) const { return quoted(text); }
  std::string operator()(DType dtype) const { return to_string(dtype); }
  std::string operator()(Layout layout) const { return "layout " + std::to_string(layout.code); }
  std::string operator()(MemoryFormat format) const {
    return "memory_format " + std::to_string(format.code);
  }
  std::string operator()(const DeviceArgument& device) const { return "device " + device.type; }
  std::string operator()(const std::vector<bool>& list) const { return bracketed(list, truth); }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    return bracketed(list, [this](const T& item) { return (*this)(item); });
  }
};

std::string to_string(const TensorType& type) {
  return to_string(type.dtype) +
         bracketed(type.sizes, [](std::int64_t size) { return std::to_string(size); });
}

std::string output_text(const Graph& graph, const Node& node) {
  std::string text;
  for (const ValueId id : node.outputs) {
    if (!text.empty()) text += ", ";
    text += "%" + graph.value(id).name + " : " + to_string(graph.value(id).type);
  }
  if (node.returns_list) text = "[" + text + "]";
  return text.empty() ? "" : text + " = ";
}

std::string node_line(const Graph& graph, const Node& node) {
  std::string text = "  " + output_text(graph, node) + node.op;
  if (!node.overload.empty()) text += "." + node.overload;
  text += "(";
  for (std::size_t i = 0; i < node.arguments.size(); ++i) {
    if (i > 0) text += ", ";
    text +=
        node.arguments[i].name + "=" + std::visit(ArgumentPrinter{graph}, node.arguments[i].value);
  }
  text += ")";
  if (!node.module_path.empty()) text += "  # " + node.module_path;
  return text + "\n";
}

const char* role_name(ValueRole role) {
  switch (role) {
    case ValueRole::Input:
      return "input";
    case ValueRole::Parameter:
      return "parameter";
    case ValueRole::Buffer:
      return "buffer";
    case ValueRole::Constant:
      return "constant";
    case ValueRole::Intermediate:
      break;
  }
  return "intermediate";
}

std::string value_line(const Graph& graph, const Value& value) {
  std::string text =
      stream_all("  ", role_name(value.role), " %", value.name, " : ", to_string(value.type));
  if (value.parameter) {
    for (const std::string& name : graph.parameters[value.parameter->index()].names)
      text += " " + name;
  } else if (!value.source_name.empty()) {
    text += " " + value.source_name;
  }
  return text + "\n";
}

}  // namespace

Bytes element_size(DType dtype) { return Bytes{facts(dtype).bytes}; }
bool is_floating(DType dtype) { return facts(dtype).floating; }
std::string to_string(DType dtype) { return facts(dtype).name; }

std::int64_t TensorType::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

Bytes TensorType::bytes() const { return elements() * element_size(dtype); }

const Argument* Node::find(const std::string& argument) const {
  for (const Argument& candidate : arguments)
    if (candidate.name == argument) return &candidate;
  return nullptr;
}

std::vector<ValueId> inputs_of(const Node& node) {
  std::vector<ValueId> values;
  for (const Argument& argument : node.arguments) {
    if (const auto* single = std::get_if<ValueId>(&argument.value)) {
      values.push_back(*single);
    } else if (const auto* list = std::get_if<std::vector<ValueId>>(&argument.value)) {
      values.insert(values.end(), list->begin(), list->end());
    } else if (const auto* optionals =
                   std::get_if<std::vector<std::optional<ValueId>>>(&argument.value)) {
      for (const std::optional<ValueId>& value : *optionals)
        if (value) values.push_back(*value);
    }
  }
  return values;
}

std::string to_string(const Graph& graph) {
  std::string text = stream_all("graph ", graph.name, ", microbatch of ", graph.microbatch_size,
                                graph.symbolic_batch ? " (open)" : "", "\n");
  for (const Value& value : graph.values)
    if (value.role != ValueRole::Intermediate) text += value_line(graph, value);
  for (const Node& node : graph.nodes) text += node_line(graph, node);
  text += "  return " + ArgumentPrinter{graph}(graph.outputs) + "\n";
  return text;
}

}  // namespace pfeife
