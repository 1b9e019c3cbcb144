// The `training` map that plans and profiles share.
#pragma once

#include "planner/io/files/yaml_node.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// {precision: ..., optimizer: ..., microbatch_size: ...}
YamlValue training_value(const Training& training);
/// Reads it. Errors: ConfigError with the place, the word found and those allowed.
Training read_training(const YamlNode& node);

}  // namespace pfeife
