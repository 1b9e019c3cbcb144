// Paths of keys such as cases.devices or links[0].bandwidth, and putting a value where one leads.
#pragma once

#include <string>

#include "planner/io/files/yaml_value.h"

namespace pfeife {

/// Puts `value` at `path` below `root`, as YamlDocument::set says. Errors: ConfigError located at
/// `label` if the path is not well formed, an index does not exist, or the way leads through a
/// value that is no map.
void set_at(YamlValue& root, const std::string& path, YamlValue value, const std::string& label);

}  // namespace pfeife
