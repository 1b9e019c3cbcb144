// The types that values have while a graph runs under automatic mixed precision.
#pragma once

#include <vector>

#include "planner/cost/operators/operators.h"
#include "planner/ir/model/graph.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// The 16-bit type of autocast; nothing without it.
std::optional<DType> narrow_type(Precision precision);

/// [value] its type when the graph runs under `precision`, by the column Autocast of the operators
/// (`traits`, [node]); for Fp32 and Tf32 as written in the graph. Only what the graph says is
/// float32 changes; parameters, inputs and explicit types (`to`, `zeros`) stay. Linear.
std::vector<DType> running_types(const Graph& graph,
                                 const std::vector<const OperatorTraits*>& traits,
                                 Precision precision);

}  // namespace pfeife
