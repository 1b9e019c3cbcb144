// cluster.yaml: devices, links and routes as people write them, to a Cluster where every pair of
// devices has its path. The format is explained in configs/clusters/README.md.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/io/files/yaml.h"
#include "planner/ir/machine/cluster.h"

namespace pfeife {

/// Values that replace those in a file, by the paths of their keys: "links.nic.bandwidth".
using Replaced = std::vector<std::pair<std::string, YamlValue>>;

/// Reads a cluster file. Errors: ConfigError with the place, also for two devices without a path.
Cluster read_cluster(const std::filesystem::path& file, const Replaced& replaced = {});
/// The file with the values replaced.
YamlDocument cluster_document(const std::filesystem::path& file, const Replaced& replaced);
/// The file's text with the values replaced: what Cluster::digest is of, if there are any.
std::string cluster_text(const std::filesystem::path& file, const Replaced& replaced);
/// Reads text as a file is read; `file` is the name for messages.
Cluster parse_cluster(std::string_view text, const std::string& file);

}  // namespace pfeife
