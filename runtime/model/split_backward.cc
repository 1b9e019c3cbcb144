#include "runtime/model/split_backward.h"

#include "planner/ir/model/arguments.h"

namespace pfeife {
namespace {

using namespace deferring;

/// Adds a b, in one pass over the gradient where there is one already: no product to keep and read
/// again.
void add_product(Tensor parameter, const Tensor& a, const Tensor& b) {
  if (parameter.grad().defined() && parameter.grad().scalar_type() == a.scalar_type())
    parameter.mutable_grad().addmm_(a, b);
  else
    add_gradient(parameter, a.mm(b));
}

Tensor flattened(const Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}  // [any..., n] -> [rows, n]

/// y = x w^T + b. x [..., in], w [out, in], b [out].
struct DeferredLinear : Function<DeferredLinear> {
  static Tensor forward(AutogradContext* c, const Tensor& x, const Tensor& w, const Maybe& b,
                        const WaitingRoom& place) {
    c->save_for_backward({x, w, b.value_or(Tensor())});
    remember(c, place);
    return at::linear(x, place.narrow(w), place.narrow(b));
  }
  static variable_list backward(AutogradContext* c, const variable_list& g) {
    const variable_list s = saved_variables(c);
    const Tensor x = operand(s[0], g[0]), w = s[1], b = s[2], gy = g[0];
    defer(c, {x, gy}, [x, w, b, gy] {
      if (w.requires_grad()) add_product(w, flattened(gy).t(), flattened(x));
      if (b.defined() && b.requires_grad()) add_gradient(b, flattened(gy).sum(0));
    });
    const bool needs = c->needs_input_grad(0);
    return {needs ? gy.matmul(w.to(gy.scalar_type())) : Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

/// y = x w (+ b). x [..., in], w [in, out], b broadcast to y.
struct DeferredProduct : Function<DeferredProduct> {
  static Tensor forward(AutogradContext* c, const Tensor& x, const Tensor& w, const Maybe& b,
                        const WaitingRoom& place) {
    c->save_for_backward({x, w, b.value_or(Tensor())});
    remember(c, place);
    const Tensor matrix = place.narrow(w);
    return b ? at::addmm(place.narrow(*b), x, matrix) : at::matmul(x, matrix);
  }
  static variable_list backward(AutogradContext* c, const variable_list& g) {
    const variable_list s = saved_variables(c);
    const Tensor x = operand(s[0], g[0]), w = s[1], b = s[2], gy = g[0];
    defer(c, {x, gy}, [x, w, b, gy] {
      if (w.requires_grad()) add_product(w, flattened(x).t(), flattened(gy));
      if (b.defined() && b.requires_grad()) add_gradient(b, at::sum_to(gy, b.sizes()));
    });
    const bool needs = c->needs_input_grad(0);
    return {needs ? gy.matmul(w.to(gy.scalar_type()).t()) : Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

struct ConvolutionShape {
  std::vector<std::int64_t> stride, padding, dilation;
  std::int64_t groups = 1;
};

/// x [batch, in, ...], w [out, in / groups, ...], b [out].
struct DeferredConvolution : Function<DeferredConvolution> {
  static Tensor forward(AutogradContext* c, const Tensor& x, const Tensor& w, const Maybe& b,
                        const ConvolutionShape& shape, const WaitingRoom& place) {
    c->save_for_backward({x, w, b.value_or(Tensor())});
    remember(c, place);
    c->saved_data["stride"] = shape.stride;
    c->saved_data["padding"] = shape.padding;
    c->saved_data["dilation"] = shape.dilation;
    c->saved_data["groups"] = shape.groups;
    // Not at::convolution, which autocast leaves in float32.
    const auto& [stride, padding, dilation, groups] = shape;
    const Tensor filter = place.narrow(w);
    const Maybe bias = place.narrow(b);
    if (stride.size() == 1) return at::conv1d(x, filter, bias, stride, padding, dilation, groups);
    if (stride.size() == 2) return at::conv2d(x, filter, bias, stride, padding, dilation, groups);
    return at::conv3d(x, filter, bias, stride, padding, dilation, groups);
  }
  static variable_list backward(AutogradContext* c, const variable_list& g) {
    const variable_list s = saved_variables(c);
    const Tensor gy = g[0], w = s[1], b = s[2];
    const Tensor x = operand(s[0], gy), wg = operand(w, gy);
    const ConvolutionShape shape{
        c->saved_data["stride"].toIntVector(), c->saved_data["padding"].toIntVector(),
        c->saved_data["dilation"].toIntVector(), c->saved_data["groups"].toInt()};
    const auto gradients = [x, wg, gy, shape, out = w.size(0)](std::array<bool, 3> wanted) {
      const std::vector<std::int64_t> none(shape.stride.size(), 0);
      return at::convolution_backward(gy, x, wg, at::OptionalIntArrayRef({out}), shape.stride,
                                      shape.padding, shape.dilation, false, none, shape.groups,
                                      wanted);
    };
    const bool needs = c->needs_input_grad(0);
    const auto weights = [gradients, w, b](bool input) {
      const bool bias = b.defined() && b.requires_grad();
      auto [gx, gw, gb] = gradients({input, w.requires_grad(), bias});
      if (w.requires_grad()) add_gradient(w, gw);
      if (bias) add_gradient(b, gb);
      return gx;
    };
    if (!waits(c)) return {weights(needs), Tensor(), Tensor(), Tensor(), Tensor()};
    defer(c, {x, gy}, [weights] { weights(false); });
    Tensor gx;
    if (needs) gx = std::get<0>(gradients({true, false, false}));
    return {gx, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

/// w [rows, width], indices of any shape.
struct DeferredEmbedding : Function<DeferredEmbedding> {
  static Tensor forward(AutogradContext* c, const Tensor& w, const Tensor& indices,
                        std::int64_t padding, bool by_frequency, const WaitingRoom& place) {
    c->save_for_backward({w, indices});
    remember(c, place);
    c->saved_data["padding"] = padding;
    c->saved_data["by_frequency"] = by_frequency;
    return at::embedding(w, indices, padding, by_frequency, false);
  }
  static variable_list backward(AutogradContext* c, const variable_list& g) {
    const variable_list s = saved_variables(c);
    const Tensor w = s[0], indices = s[1], gy = g[0];
    defer(c, {indices, gy},
          [w, indices, gy, padding = c->saved_data["padding"].toInt(),
           by_frequency = c->saved_data["by_frequency"].toBool()] {
            add_gradient(
                w, at::embedding_dense_backward(gy, indices, w.size(0), padding, by_frequency));
          });
    return {Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

Maybe tensor_or_none(const c10::IValue& value) {
  return value.isTensor() ? Maybe(value.toTensor()) : std::nullopt;
}
std::vector<std::int64_t> per_dimension(const c10::IValue& list, std::size_t dimensions) {
  std::vector<std::int64_t> values = list.toIntVector();
  if (values.size() == 1) values.resize(dimensions, values[0]);
  return values;
}

bool is_trainable(const Graph& graph, const Node& node, const char* argument) {
  const ValueId value = tensor_argument(node, argument);
  if (value == kNoValue) return false;
  const auto parameter = graph.value(value).parameter;
  return parameter && graph.parameters[parameter->index()].trainable;
}
bool is_absent_or_parameter(const Graph& graph, const Node& node, const char* argument) {
  const Argument* actual = node.find(argument);
  if (actual == nullptr || std::holds_alternative<std::monostate>(actual->value)) return true;
  const auto* id = std::get_if<ValueId>(&actual->value);
  return id != nullptr && graph.value(*id).role == ValueRole::Parameter;
}
std::size_t dimensions(const Graph& graph, const Node& node, const char* argument) {
  const ValueId value = tensor_argument(node, argument);
  return value == kNoValue ? 0 : graph.value(value).type.sizes.size();
}

}  // namespace

void WeightQueue::run(StageObserver* observer) {
  const at::NoGradGuard no_gradients;
  for (PendingWeight& weight : pending) {
    const NodeId node = weight.node;
    if (observer) observer->before_weight(node);
    weight.compute();
    weight = {};  // frees the activations it held
    if (observer) observer->after_weight(node);
  }
  pending.clear();
}

std::optional<Deferral> deferred_kind(const Graph& graph, const Node& node) {
  const bool plain = node.overload.empty();
  if (node.op == "aten::linear" && is_trainable(graph, node, "weight") &&
      is_absent_or_parameter(graph, node, "bias"))
    return Deferral{DeferredKind::Linear};
  if (node.op == "aten::addmm" && plain && is_trainable(graph, node, "mat2") &&
      is_absent_or_parameter(graph, node, "self") && !node.find("beta") && !node.find("alpha"))
    return Deferral{DeferredKind::Addmm};
  if ((node.op == "aten::matmul" || node.op == "aten::mm") && is_trainable(graph, node, "other") &&
      dimensions(graph, node, "other") == 2)
    return Deferral{DeferredKind::Matmul};
  const bool convolution =
      node.op == "aten::conv1d" || node.op == "aten::conv2d" || node.op == "aten::conv3d";
  if (convolution && plain && is_trainable(graph, node, "weight") &&
      is_absent_or_parameter(graph, node, "bias") &&
      dimensions(graph, node, "input") == dimensions(graph, node, "weight"))
    return Deferral{DeferredKind::Convolution};
  if (node.op == "aten::embedding" && is_trainable(graph, node, "weight"))
    return Deferral{DeferredKind::Embedding};
  if (const auto waiting = waiting_operands(graph, node); waiting.left || waiting.right)
    return Deferral{DeferredKind::Einsum, waiting};
  if (const auto weight = grouped_weight(graph, node); weight != GroupedWeight::None)
    return Deferral{DeferredKind::GroupedProduct, {}, weight};
  return {};
}

void call_deferred(const Deferral& how, NodeId node, torch::jit::Stack& stack, const Queue& queue,
                   CastCache* casts) {
  const auto& a = stack;
  const WaitingRoom place{node, queue, casts};
  Tensor result;
  switch (how.kind) {
    case DeferredKind::Linear:
      result = DeferredLinear::apply(a[0].toTensor(), a[1].toTensor(), tensor_or_none(a[2]), place);
      break;
    case DeferredKind::Addmm:
      result =
          DeferredProduct::apply(a[1].toTensor(), a[2].toTensor(), Maybe(a[0].toTensor()), place);
      break;
    case DeferredKind::Matmul:
      result = DeferredProduct::apply(a[0].toTensor(), a[1].toTensor(), Maybe(), place);
      break;
    case DeferredKind::Convolution: {
      const auto spatial = static_cast<std::size_t>(a[1].toTensor().dim() - 2);
      const ConvolutionShape shape{per_dimension(a[3], spatial), per_dimension(a[4], spatial),
                                   per_dimension(a[5], spatial), a[6].toInt()};
      result = DeferredConvolution::apply(a[0].toTensor(), a[1].toTensor(), tensor_or_none(a[2]),
                                          shape, place);
      break;
    }
    case DeferredKind::Embedding:
      result = DeferredEmbedding::apply(a[0].toTensor(), a[1].toTensor(), a[2].toInt(),
                                        a[3].toBool(), place);
      break;
    case DeferredKind::Einsum:
      result = deferred_einsum(stack, how.waiting, place);
      break;
    case DeferredKind::GroupedProduct:
      result = deferred_grouped_product(stack, how.grouped, place);
      break;
  }
  stack.clear();
  stack.emplace_back(std::move(result));
}

}  // namespace pfeife
