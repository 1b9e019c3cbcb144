// Builds a Graph from the program of a `.pt2` archive.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "planner/ir/model/graph.h"

namespace pfeife {

/// The graph of `program` (models/model.json) with the open batch size bound to `microbatch_size`,
/// or to the export's example without one. `weights` is the content of model_weights_config.json,
/// `facts` that of extra/pfeife.json ({} without it): "batch_dimensions" by input, of an archive of
/// one batch size; "loss_weight", the position of that output.
/// Name and digest are left empty. Malformed (json_fields.h), with node and remedy, for what we do
/// not understand or what is not consistent.
Graph build_pt2_graph(const nlohmann::json& program, const nlohmann::json& weights,
                      const nlohmann::json& facts, std::optional<std::int64_t> microbatch_size);

}  // namespace pfeife
