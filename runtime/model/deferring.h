// For backward functions that leave a weight's gradient to a queue. Internal to split_backward.cc
// and split_products.cc.
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
/// their bytes (saved_tensors.h).
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
