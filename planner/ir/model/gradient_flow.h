// Which values of a graph receive a gradient.
#pragma once

#include "planner/ir/model/graph.h"

namespace pfeife {

/// Sets `requires_grad` of every intermediate: an output requires a gradient if it is floating and
/// an input of its node does, unless the operator passes none on (`detach`, `zeros_like`, ...).
/// What an in-place operator writes into, also through views, requires it from there on.
/// Parameters, inputs and buffers keep what they have.
void propagate_requires_grad(Graph& graph);

}  // namespace pfeife
