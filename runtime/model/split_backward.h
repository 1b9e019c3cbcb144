// Operators whose weight gradient can wait: linear layers, convolutions, embeddings, einsums and
// grouped products, with a backward that hands on dI and puts dW into a queue, or makes both at
// once. Either way a product is added to the gradient while it is made; autograd makes it first and
// then adds it.
//
// Not covered: parameters of other operators (norms, biases added by hand). Their gradients come
// with dI, from kernels that make both in one pass.
#pragma once

#include <optional>

#include "planner/ir/model/graph.h"
#include "runtime/model/split_products.h"

namespace pfeife {

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
