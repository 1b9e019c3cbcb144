// Which dimension of each input holds a microbatch's samples.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "planner/ir/model/graph.h"

namespace pfeife {

/// The dimension of `input` that is the open batch size, from the archive's `sizes` of it; none if
/// the batch size is in no dimension. Malformed (json_fields.h) if it is in several, or if one is a
/// multiple of it.
std::optional<std::size_t> open_batch_dimension(const Value& input, const nlohmann::json& sizes);

/// Sets the batch dimensions of the inputs and the microbatch size of a graph of one batch size:
/// those of `batch_dimensions` in `facts` (extra/pfeife.json); without it the first of every input
/// if all are equally long, else the only length that every input has once. Malformed, with the
/// input's shape and the remedy, if neither says it.
void settle_fixed_batch(Graph& graph, const nlohmann::json& facts);

}  // namespace pfeife
