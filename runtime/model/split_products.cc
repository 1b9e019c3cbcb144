#include "planner/ir/model/arguments.h"
#include "planner/ir/model/product_gradients.h"
#include "runtime/model/split_backward.h"

namespace pfeife {
namespace {

using namespace deferring;

/// To the parameter that `w` is a view of, through the history of the view.
void add_through_views(const Tensor& w, const Tensor& gradient) {
  if (w.is_leaf()) return add_gradient(w, gradient);
  torch::autograd::backward({w}, {gradient.to(w.scalar_type())});
}

/// y = einsum(equation, {a, b}).
struct DeferredEinsum : Function<DeferredEinsum> {
  static Tensor forward(AutogradContext* c, const Tensor& a, const Tensor& b,
                        const std::string& equation, WaitingOperands waiting,
                        const WaitingRoom& place) {
    c->save_for_backward({a, b});
    remember(c, place);
    c->saved_data["equation"] = equation;
    c->saved_data["left"] = waiting.left;
    c->saved_data["right"] = waiting.right;
    return at::einsum(equation, {a, b});
  }
  static variable_list backward(AutogradContext* c, const variable_list& g) {
    const variable_list s = saved_variables(c);
    const Tensor gy = g[0], a = s[0], b = s[1];
    const EinsumGradients by = *einsum_gradients(c->saved_data["equation"].toStringRef());
    const Tensor x = operand(a, gy), w = operand(b, gy);
    const auto left = [by, gy, w] { return at::einsum(by.left, {gy, w}); };
    const auto right = [by, gy, x] { return at::einsum(by.right, {x, gy}); };
    const bool left_waits = c->saved_data["left"].toBool(),
               right_waits = c->saved_data["right"].toBool();
    if (left_waits) defer(c, {w, gy}, [a, left] { add_gradient(a, left()); });
    if (right_waits) defer(c, {x, gy}, [b, right] { add_gradient(b, right()); });
    Tensor to_left, to_right;
    if (c->needs_input_grad(0) && !left_waits) to_left = left();
    if (c->needs_input_grad(1) && !right_waits) to_right = right();
    return {to_left, to_right, Tensor(), Tensor(), Tensor()};
  }
};

/// x [rows, in], w [groups, in, out], ends [groups]: the rows before each end meet its matrix.
struct DeferredGroupedProduct : Function<DeferredGroupedProduct> {
  static Tensor forward(AutogradContext* c, const Tensor& x, const Tensor& w, const Tensor& ends,
                        bool waiting, const WaitingRoom& place) {
    c->save_for_backward({x, w, ends});
    remember(c, place);
    c->saved_data["waiting"] = waiting;
    return at::_grouped_mm(x, w, ends);
  }
  static variable_list backward(AutogradContext* c, const variable_list& g) {
    const variable_list s = saved_variables(c);
    const Tensor gy = g[0].contiguous(), w = s[1], ends = s[2];
    const Tensor x = operand(s[0], gy);
    const auto weight = [x, gy, ends] { return at::_grouped_mm(x.t(), gy, ends); };
    const bool waiting = c->saved_data["waiting"].toBool();
    if (waiting) defer(c, {x, gy}, [w, weight] { add_through_views(w, weight()); });
    Tensor to_rows, to_matrices;
    if (c->needs_input_grad(0)) to_rows = at::_grouped_mm(gy, operand(w, gy).transpose(1, 2), ends);
    if (c->needs_input_grad(1) && !waiting) to_matrices = weight();
    return {to_rows, to_matrices, Tensor(), Tensor(), Tensor()};
  }
};

constexpr const char* kBatchOfProducts = "bij,bjk->bik";

/// The operands of an einsum of two tensors with gradients.
std::vector<ValueId> einsum_operands(const Graph& graph, const Node& node) {
  const std::vector<ValueId> read = inputs_of(node);
  if (read.size() != 2) return {};
  if (node.op == "aten::einsum") {
    const Argument* equation = node.find("equation");
    const auto* text = equation ? std::get_if<std::string>(&equation->value) : nullptr;
    return text && einsum_gradients(*text) ? read : std::vector<ValueId>{};
  }
  if (node.op != "aten::bmm" && node.op != "aten::matmul") return {};
  const auto& left = graph.value(read[0]).type.sizes;
  const auto& right = graph.value(read[1]).type.sizes;
  return left.size() == 3 && right.size() == 3 && left[0] == right[0] ? read
                                                                      : std::vector<ValueId>{};
}

bool is_trainable(const Graph& graph, ValueId v) {
  const Value& value = graph.value(v);
  return value.parameter && graph.parameters[value.parameter->index()].trainable;
}

}  // namespace

WaitingOperands waiting_operands(const Graph& graph, const Node& node) {
  const std::vector<ValueId> operands = einsum_operands(graph, node);
  if (operands.empty()) return {};
  return {is_trainable(graph, operands[0]), is_trainable(graph, operands[1])};
}

GroupedWeight grouped_weight(const Graph& graph, const Node& node) {
  if (node.op != "aten::_grouped_mm") return GroupedWeight::None;
  const ValueId rows = tensor_argument(node, "self"), weight = tensor_argument(node, "mat2");
  const bool plain = tensor_argument(node, "offs") != kNoValue &&
                     tensor_argument(node, "bias") == kNoValue && !node.find("out_dtype");
  if (!plain || weight == kNoValue || graph.value(weight).type.sizes.size() != 3 ||
      graph.value(rows).type.sizes.size() != 2)
    return GroupedWeight::None;
  const ValueId parameter = parameter_behind(graph, weight);
  if (parameter == kNoValue || !is_trainable(graph, parameter)) return GroupedWeight::None;
  return parameter == weight ? GroupedWeight::Parameter : GroupedWeight::View;
}

at::Tensor deferred_einsum(const torch::jit::Stack& arguments, WaitingOperands waiting,
                           const WaitingRoom& place) {
  if (arguments[0].isTensor())
    return DeferredEinsum::apply(arguments[0].toTensor(), arguments[1].toTensor(),
                                 std::string(kBatchOfProducts), waiting, place);
  const std::vector<Tensor> operands = arguments[1].toTensorVector();
  return DeferredEinsum::apply(operands[0], operands[1], arguments[0].toStringRef(), waiting,
                               place);
}

at::Tensor deferred_grouped_product(const torch::jit::Stack& arguments, GroupedWeight weight,
                                    const WaitingRoom& place) {
  const Tensor matrices = arguments[1].toTensor();
  const bool waiting = weight == GroupedWeight::Parameter || !matrices.is_leaf();
  return DeferredGroupedProduct::apply(arguments[0].toTensor(), matrices, arguments[2].toTensor(),
                                       waiting, place);
}

}  // namespace pfeife
