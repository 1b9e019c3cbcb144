// cluster.yaml: devices, links and routes as people write them, to a Cluster where every pair of
// devices has its path. The format is explained in configs/clusters/README.md.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "planner/ir/cluster.h"

namespace pfeife {

/// Reads a cluster file. Errors: ConfigError with the place, also for two devices without a path.
Cluster read_cluster(const std::filesystem::path& file);
/// Likewise from text; `file` is the name for messages.
Cluster parse_cluster(std::string_view text, const std::string& file);

}  // namespace pfeife
