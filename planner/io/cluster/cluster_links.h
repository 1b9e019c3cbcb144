// The links and routes of cluster.yaml, expanded to directed links and one path for every ordered
// pair of devices.
#pragma once

#include "planner/io/files/yaml_node.h"
#include "planner/ir/machine/cluster.h"

namespace pfeife {

/// Fills in cluster.links, cluster.paths and cluster.rings from the keys `links`, `routes`, `rings`
/// and `devices_per_node` of `root`. cluster.kind_of_device must be there. A path is the first
/// route that connects the two devices; its bandwidth is the narrowest of its links at each size.
void add_links_and_paths(const YamlNode& root, Cluster& cluster);

}  // namespace pfeife
