#include "runtime/model/operators.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/ir/basics/error.h"
#include "planner/ir/model/arguments.h"

namespace pfeife {
namespace {

constexpr std::array<std::pair<DType, c10::ScalarType>, 16> kTypes{{
    {DType::UInt8, c10::kByte},
    {DType::Int8, c10::kChar},
    {DType::Int16, c10::kShort},
    {DType::Int32, c10::kInt},
    {DType::Int64, c10::kLong},
    {DType::Float16, c10::kHalf},
    {DType::Float32, c10::kFloat},
    {DType::Float64, c10::kDouble},
    {DType::Complex32, c10::kComplexHalf},
    {DType::Complex64, c10::kComplexFloat},
    {DType::Complex128, c10::kComplexDouble},
    {DType::Bool, c10::kBool},
    {DType::BFloat16, c10::kBFloat16},
    {DType::UInt16, c10::kUInt16},
    {DType::Float8E4M3, c10::kFloat8_e4m3fn},
    {DType::Float8E5M2, c10::kFloat8_e5m2},
}};

constexpr std::array<std::string_view, 8> kMetadataOnly{
    "aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::empty_like",
    "aten::new_zeros",  "aten::new_ones",  "aten::new_full",  "aten::new_empty"};

[[noreturn]] void refuse(const Graph& graph, const Node& node, const std::string& why) {
  throw ConfigError({graph.name}, "node '" + node.name + "' (" + node.op +
                                      (node.overload.empty() ? "" : "." + node.overload) +
                                      "): " + why);
}

c10::OperatorHandle handle_of(const Graph& graph, const Node& node) {
  const auto found = c10::Dispatcher::singleton().findSchema({node.op, node.overload});
  if (!found)
    refuse(graph, node,
           "this LibTorch has no such operator; export with the operators of aten (torch 2.11), or "
           "load the library that defines it");
  return *found;
}

bool is_random(const c10::OperatorHandle& op, const Node& node) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) return false;
  if (node.op == "aten::dropout" || node.op == "aten::dropout_")
    return number_argument(node, "p", 0.5) > 0 && flag_argument(node, "train", true);
  if (node.op == "aten::scaled_dot_product_attention")
    return number_argument(node, "dropout_p", 0.0) > 0;
  return true;
}

void add_values(const ArgumentValue& value, std::vector<ValueId>& out) {
  if (const auto* single = std::get_if<ValueId>(&value)) out.push_back(*single);
  if (const auto* many = std::get_if<std::vector<ValueId>>(&value))
    out.insert(out.end(), many->begin(), many->end());
  if (const auto* optional_values = std::get_if<std::vector<std::optional<ValueId>>>(&value))
    for (const auto& v : *optional_values)
      if (v) out.push_back(*v);
}

void require_arguments(const Graph& graph, const Node& node, const c10::FunctionSchema& schema) {
  for (const auto& formal : schema.arguments())
    if (!formal.default_value() && node.find(formal.name()) == nullptr)
      refuse(graph, node, "argument '" + formal.name() + "' is missing");
  for (const Argument& actual : node.arguments)
    if (!schema.argumentIndexWithName(actual.name))
      refuse(graph, node, "argument '" + actual.name + "' is unknown to the operator's schema");
}

NodeEffects effects(const Graph& graph, const Node& node) {
  const c10::OperatorHandle op = handle_of(graph, node);
  require_arguments(graph, node, op.schema());
  NodeEffects result;
  result.random = is_random(op, node);
  result.metadata_only = std::ranges::find(kMetadataOnly, node.op) != kMetadataOnly.end();
  for (const auto& formal : op.schema().arguments()) {
    const Argument* actual = node.find(formal.name());
    if (actual == nullptr) continue;
    std::vector<ValueId> values;
    add_values(actual->value, values);
    // Batch norm's schema does not say that it updates its statistics.
    const bool statistics =
        node.op.find("batch_norm") != std::string::npos && formal.name().starts_with("running_");
    const auto* alias = formal.alias_info();
    if (statistics || (alias != nullptr && alias->isWrite()))
      result.writes.insert(result.writes.end(), values.begin(), values.end());
    if (alias != nullptr)
      for (const ValueId in : values)
        for (const ValueId out : node.outputs) result.aliases.emplace_back(in, out);
  }
  if (node.op == "aten::dropout" && !result.random)  // returns its argument
    for (const ValueId in : inputs_of(node)) result.aliases.emplace_back(in, node.outputs[0]);
  return result;
}

/// A constant argument as the schema wants it.
class Constants {
 public:
  Constants(const Graph& graph, const Node& node, const Placing& placing)
      : graph_(graph), node_(node), placing_(placing) {}

  c10::IValue convert(const c10::Argument& formal, const ArgumentValue& value) const {
    const c10::TypePtr type = inner(formal.type());
    if (std::holds_alternative<std::monostate>(value)) return {};
    if (const auto* real = std::get_if<double>(&value)) return number(type, *real);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return integer(formal, type, *whole);
    if (const auto* truth = std::get_if<bool>(&value)) return boolean(type, *truth);
    if (const auto* dtype = std::get_if<DType>(&value))
      return static_cast<std::int64_t>(placed_type(*dtype, placing_));
    if (const auto* layout = std::get_if<Layout>(&value)) return layout->code;
    if (const auto* format = std::get_if<MemoryFormat>(&value)) return format->code;
    if (std::holds_alternative<DeviceArgument>(value)) return placing_.device;
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
      return integers(type, *list);
    if (const auto* list = std::get_if<std::vector<double>>(&value))
      return c10::List<double>(*list);
    if (const auto* list = std::get_if<std::vector<bool>>(&value)) {
      c10::List<bool> out;
      for (const bool b : *list) out.push_back(b);
      return out;
    }
    refuse(graph_, node_, "argument '" + formal.name() + "' is of a kind that is not executed");
  }

 private:
  static c10::TypePtr inner(c10::TypePtr type) {
    if (const auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
    return type;
  }
  static bool is_tensor(const c10::TypePtr& type) {
    return type->kind() == c10::TypeKind::TensorType;
  }

  // A number where a tensor is wanted takes part in type promotion as a number: a wrapped one.
  static c10::IValue number(const c10::TypePtr& type, double value) {
    if (is_tensor(type)) return at::native::wrapped_scalar_tensor(at::Scalar(value));
    return value;
  }
  static c10::IValue integer(const c10::Argument& formal, const c10::TypePtr& type,
                             std::int64_t value) {
    if (is_tensor(type)) return at::native::wrapped_scalar_tensor(at::Scalar(value));
    if (type->kind() == c10::TypeKind::FloatType) return static_cast<double>(value);
    if (type->kind() == c10::TypeKind::BoolType) return value != 0;
    if (type->kind() == c10::TypeKind::ListType)
      return c10::List<std::int64_t>(
          std::vector<std::int64_t>(static_cast<std::size_t>(formal.N().value_or(1)), value));
    return value;
  }
  static c10::IValue boolean(const c10::TypePtr& type, bool value) {
    if (is_tensor(type)) return at::native::wrapped_scalar_tensor(at::Scalar(value));
    return value;
  }
  static c10::IValue integers(const c10::TypePtr& type, const std::vector<std::int64_t>& list) {
    if (const auto list_type = type->cast<c10::ListType>();
        list_type && list_type->getElementType()->kind() == c10::TypeKind::FloatType)
      return c10::List<double>(std::vector<double>(list.begin(), list.end()));
    return c10::List<std::int64_t>(list);
  }

  const Graph& graph_;
  const Node& node_;
  const Placing& placing_;
};

}  // namespace

c10::ScalarType scalar_type(DType dtype) {
  for (const auto& [ours, theirs] : kTypes)
    if (ours == dtype) return theirs;
  PFEIFE_CHECK(false, "no such dtype");
  return c10::kFloat;
}

DType dtype_of(c10::ScalarType type) {
  for (const auto& [ours, theirs] : kTypes)
    if (theirs == type) return ours;
  throw RuntimeFault(stream_all("a tensor of type ", c10::toString(type), " has no name here"));
}

c10::ScalarType placed_type(DType dtype, const Placing& placing) {
  const c10::ScalarType type = scalar_type(dtype);
  if (!placing.double_precision) return type;
  if (type == c10::kComplexHalf || type == c10::kComplexFloat) return c10::kComplexDouble;
  return type == c10::kHalf || type == c10::kBFloat16 || type == c10::kFloat ? c10::kDouble : type;
}

std::vector<NodeEffects> effects_of(const Graph& graph) {
  std::vector<NodeEffects> all;
  all.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) all.push_back(effects(graph, node));
  return all;
}

Call compile_call(const Graph& graph, const Node& node, const Placing& placing) {
  Call call{handle_of(graph, node), {}, {}, {}};
  const Constants constants(graph, node, placing);
  require_arguments(graph, node, call.op.schema());
  const auto& formals = call.op.schema().arguments();
  for (std::size_t i = 0; i < formals.size(); ++i) {
    const Argument* actual = node.find(formals[i].name());
    if (actual == nullptr) {
      call.stack.push_back(*formals[i].default_value());
      continue;
    }
    if (const auto* single = std::get_if<ValueId>(&actual->value)) {
      call.holes.push_back({i, *single});
      call.stack.emplace_back();
    } else if (const auto* many = std::get_if<std::vector<ValueId>>(&actual->value)) {
      call.list_holes.push_back({i, {many->begin(), many->end()}, false});
      call.stack.emplace_back();
    } else if (const auto* optional_values =
                   std::get_if<std::vector<std::optional<ValueId>>>(&actual->value)) {
      call.list_holes.push_back({i, *optional_values, true});
      call.stack.emplace_back();
    } else {
      call.stack.push_back(constants.convert(formals[i], actual->value));
    }
  }
  // A list of tensors for Tensor?[] arrives as plain tensors when none of them is missing.
  for (Call::ListHole& hole : call.list_holes) {
    const auto list = formals[hole.argument].type()->cast<c10::ListType>();
    hole.optional = list && list->getElementType()->kind() == c10::TypeKind::OptionalType;
  }
  return call;
}

}  // namespace pfeife
