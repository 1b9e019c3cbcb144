// The links and routes of cluster.yaml, expanded to directed links and one path for every ordered
// pair of devices.
#pragma once

#include "planner/io/cluster/cluster_file.h"

namespace pfeife {

/// The cluster of a file, `root` for messages; without `file` and `digest`. A path is the first
/// route that connects the two devices; its bandwidth is the narrowest of its links at each size.
/// Errors: ConfigError with the place for two devices without a path.
Cluster resolved(const ClusterFile& file, const YamlNode& root);

}  // namespace pfeife
