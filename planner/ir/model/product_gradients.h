// Which gradients of products of several tensors can be made one without the other: for the
// planner's costs and the runtime alike.
#pragma once

#include <optional>
#include <string>

#include "planner/ir/model/arguments.h"
#include "planner/ir/model/graph.h"

namespace pfeife {

/// Einsums that give the gradients of an einsum's two operands: `left` of (gradient of the result,
/// right operand), `right` of (left operand, gradient of the result).
struct EinsumGradients {
  std::string left, right;
  friend bool operator==(const EinsumGradients&, const EinsumGradients&) = default;
};
/// The gradients of `equation` ("bti,hio->bhto": "bhto,hio->bti" and "bti,bhto->hio"). Nothing if
/// they are no einsums: without "->" or with "...", other than two operands, a letter that an
/// operand has twice, or one that neither the other operand nor the result has.
std::optional<EinsumGradients> einsum_gradients(std::string equation);

/// The only node that reads `v`; nothing if there are none or several, or if `v` is an output.
std::optional<NodeId> sole_reader(const Graph& graph, ValueId v);

/// The parameter that `v` is, or shows whole in another shape (transposed, permuted, ...) through
/// views of which each is read once; else kNoValue. Linear in the nodes for each view.
ValueId parameter_behind(const Graph& graph, ValueId v);

}  // namespace pfeife
