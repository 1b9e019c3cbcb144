// The device of each rank, as plans and experiments write it: [0, 1, 3].
#pragma once

#include <vector>

#include "planner/io/files/yaml_node.h"
#include "planner/ir/basics/ids.h"

namespace pfeife {

/// Errors: ConfigError if a device is there twice: it has the memory and the time of one rank.
std::vector<DeviceId> device_list(const YamlNode& node);

}  // namespace pfeife
