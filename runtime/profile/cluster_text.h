// What was measured of this machine, as a cluster file.
#pragma once

#include <string>

#include "runtime/profile/device_speed.h"
#include "runtime/profile/links.h"

namespace pfeife {

/// cluster.yaml of `devices` equal devices, every two joined as measured. `origin` says where and
/// when. What planner/io/cluster/cluster_reader.h reads.
std::string cluster_text(const std::string& name, const DeviceKind& kind, std::size_t devices,
                         const LinkMeasurement& link, const std::string& origin);

}  // namespace pfeife
