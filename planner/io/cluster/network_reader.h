// A cluster file as one of many equal hosts: its keys `between_hosts` and `all_reduce`, which
// configs/clusters/README.md explains.
#pragma once

#include <filesystem>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/ir/machine/network.h"

namespace pfeife {

/// The file's devices are one host. Errors: ConfigError with the place, also if the devices are of
/// several kinds, some pair of them is further apart than another one, or `between_hosts` is
/// missing.
Network read_network(const std::filesystem::path& file, const Replaced& replaced = {});
/// The text of such a file, which reads as the same network.
std::string network_text(const Network& network);

}  // namespace pfeife
