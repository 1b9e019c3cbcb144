// A file of layer times: CSV, a row a layer of a model on one rank of a mesh, as measured
// (configs/reference/layer_times.md).
#pragma once

#include <filesystem>
#include <string>

#include "planner/ir/model/measured_layers.h"

namespace pfeife {

/// `name`: what the file is called in messages; "" = its path. Errors: ConfigError with the place.
MeasuredLayers read_measured_layers(const std::filesystem::path& file,
                                    const std::string& name = "");

/// The rows as such a file, which reads as the same rows.
std::string measured_layers_text(const MeasuredLayers& layers);

}  // namespace pfeife
