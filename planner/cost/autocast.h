// A graph as it runs under automatic mixed precision.
#pragma once

#include "planner/ir/graph.h"
#include "planner/ir/profile.h"

namespace pfeife {

/// The graph with the types its values have under autocast: products, convolutions and attention
/// give 16-bit results, norms, softmax, powers, exponentials and losses fp32 ones, the rest follow
/// their inputs (the widest). Parameters and inputs keep their type. For Fp32 and Tf32 the graph
/// itself. Source: the operator lists of PyTorch's autocast documentation (CUDA).
Graph under_autocast(const Graph& graph, Precision precision);

}  // namespace pfeife
