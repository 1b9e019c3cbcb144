// Operators whose weight gradient can wait: linear layers, convolutions and embeddings, with a
// backward that hands on dI and puts dW into a queue, or makes both at once. Either way a product
// is added to the gradient while it is made; autograd makes it first and then adds it.
//
// Not covered: parameters of other operators (norms, biases added by hand). Their gradients come
// with dI, from kernels that make both in one pass.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/ir/graph.h"
#include "runtime/device/aten.h"
#include "runtime/model/stage_observer.h"

namespace pfeife {

/// The weight gradients of a node that are still to be computed.
struct PendingWeight {
  NodeId node;
  std::vector<at::Tensor> kept;   ///< what `compute` needs besides parameters
  std::function<void()> compute;  ///< adds to the parameters' gradients
};

/// Those of one microbatch; filled by I, emptied by W.
struct WeightQueue : torch::CustomClassHolder {
  std::vector<PendingWeight> pending;
  /// Computes them all and frees what they held.
  void run(StageObserver* observer = nullptr);
};

/// The kinds of operators that defer.
enum class DeferredKind { Linear, Addmm, Matmul, Convolution, Embedding };

/// How `node` can be deferred: its weight must be a trainable parameter itself. Empty if it cannot.
std::optional<DeferredKind> deferred_kind(const Graph& graph, const Node& node);

/// Calls the operator of `node` on `stack` (arguments in the order of its schema) so that its
/// backward defers to `queue`, or does not defer if there is none. Leaves the result on the stack.
void call_deferred(DeferredKind kind, NodeId node, torch::jit::Stack& stack,
                   const c10::intrusive_ptr<WeightQueue>& queue);

}  // namespace pfeife
