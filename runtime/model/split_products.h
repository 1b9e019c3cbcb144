// Einsums of two operands and products of groups whose weight gradient can wait, as
// split_backward.h has it for other operators.
#pragma once

#include "planner/ir/model/graph.h"
#include "runtime/model/deferring.h"

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

}  // namespace pfeife
