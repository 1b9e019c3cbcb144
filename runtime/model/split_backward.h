// Weight gradients that can wait; each part is in a source of its name.
#pragma once

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "planner/ir/model/graph.h"
#include "runtime/model/cast_cache.h"
#include "runtime/model/stage_observer.h"

namespace pfeife {

// Einsums of two operands and products of groups whose weight gradient can wait, as
// split_backward.h has it for other operators; and how backward functions leave a weight's gradient
// to a queue, which split_backward.cc uses, too.

/// The weight gradients of a node that are still to be computed.
struct PendingWeight {
  NodeId node;
  std::vector<at::Tensor> kept;   ///< what `compute` needs besides parameters
  std::function<void()> compute;  ///< adds to the parameters' gradients
};

/// The products of one microbatch that wait; filled by I, emptied by W.
struct WeightQueue : torch::CustomClassHolder {
  std::vector<PendingWeight> pending;
  /// Computes them all and frees what they held.
  void run(StageObserver* observer = nullptr);
};

}  // namespace pfeife

namespace pfeife::deferring {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;
using Maybe = std::optional<Tensor>;  // an undefined tensor is no argument of a Function
using Queue = c10::intrusive_ptr<WeightQueue>;

/// Where a node's weight gradients wait (without a queue they do not) and where the stage keeps
/// autocast's casts of its parameters (without, the operator casts them itself).
struct WaitingRoom {
  NodeId node;
  Queue queue;
  CastCache* casts = nullptr;

  Tensor narrow(const Tensor& parameter) const {
    return casts ? casts->narrow(parameter) : parameter;
  }
  Maybe narrow(const Maybe& parameter) const {
    return parameter ? Maybe(narrow(*parameter)) : parameter;
  }
};
inline void remember(AutogradContext* context, const WaitingRoom& place) {
  if (!place.queue) return;
  context->saved_data["queue"] = c10::IValue::make_capsule(place.queue);
  context->saved_data["node"] = place.node.value;
}
inline bool waits(const AutogradContext* context) {
  return context->saved_data.count("queue") != 0;
}
/// Computes now if there is no queue.
template <class Compute>
void defer(AutogradContext* context, std::initializer_list<Tensor> kept, Compute compute) {
  if (!waits(context)) return compute();
  const auto queue =
      c10::static_intrusive_pointer_cast<WeightQueue>(context->saved_data["queue"].toCapsule());
  queue->pending.push_back({NodeId{context->saved_data["node"].toInt()}, kept, std::move(compute)});
}

/// What multiplies `gradient`, in its type. Without history: where W waits with it, history would
/// keep the leaf at its other end.
inline Tensor operand(const Tensor& saved, const Tensor& gradient) {
  return saved.detach().to(gradient.scalar_type());
}

/// What the forward saved; parameters themselves, also where autograd holds other tensors over
/// their bytes.
inline variable_list saved_variables(AutogradContext* context) {
  variable_list saved = context->get_saved_variables();
  for (Tensor& tensor : saved) {
    if (!tensor.defined()) continue;
    const auto accumulator = torch::autograd::impl::try_get_grad_accumulator(tensor);
    const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(accumulator.get());
    if (leaf && leaf->variable.is_alias_of(tensor)) tensor = leaf->variable;
  }
  return saved;
}

inline void add_gradient(Tensor parameter, const Tensor& gradient) {
  const Tensor as_parameter = gradient.to(parameter.scalar_type());
  if (parameter.grad().defined())
    parameter.mutable_grad().add_(as_parameter);
  else
    parameter.mutable_grad() = as_parameter.detach();
}

}  // namespace pfeife::deferring

namespace pfeife {

/// Which of the two operands of an einsum that has gradients by einsum, or of a product of batches
/// of matrices, are trainable parameters themselves. None of others.
struct WaitingOperands {
  bool left = false, right = false;
};
WaitingOperands waiting_operands(const Graph& graph, const Node& node);

/// The matrices of an `aten::_grouped_mm` without bias are a trainable parameter, or a view of one.
enum class GroupedWeight { None, Parameter, View };
GroupedWeight grouped_weight(const Graph& graph, const Node& node);

/// The operator called on the arguments of its schema.
at::Tensor deferred_einsum(const torch::jit::Stack& arguments, WaitingOperands waiting,
                           const deferring::WaitingRoom& place);
/// The gradient of a view without history (made elsewhere) does not wait.
at::Tensor deferred_grouped_product(const torch::jit::Stack& arguments, GroupedWeight weight,
                                    const deferring::WaitingRoom& place);

// Operators whose weight gradient can wait: linear layers, convolutions, embeddings, einsums and
// grouped products, with a backward that hands on dI and puts dW into a queue, or makes both at
// once. Either way a product is added to the gradient while it is made; autograd makes it first and
// then adds it.
//
// Not covered: parameters of other operators (norms, biases added by hand). Their gradients come
// with dI, from kernels that make both in one pass.

/// The kinds of operators that defer.
enum class DeferredKind { Linear, Addmm, Matmul, Convolution, Embedding, Einsum, GroupedProduct };

struct Deferral {
  DeferredKind kind;
  WaitingOperands waiting = {};                 ///< of an einsum
  GroupedWeight grouped = GroupedWeight::None;  ///< of a grouped product
};

/// How `node` can be deferred: its weight must be a trainable parameter itself; of a grouped
/// product it may be a view of one. Empty if it cannot.
std::optional<Deferral> deferred_kind(const Graph& graph, const Node& node);

/// Calls the operator of `node` on `stack` (arguments in the order of its schema) so that its
/// backward defers to `queue`, or does not defer if there is none. Leaves the result on the stack.
/// `casts`: where parameters are cast for autocast; nullptr = by the operator.
void call_deferred(const Deferral& how, NodeId node, torch::jit::Stack& stack,
                   const c10::intrusive_ptr<WeightQueue>& queue, CastCache* casts = nullptr);

}  // namespace pfeife
