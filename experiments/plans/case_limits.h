// What a case says of its plans, before there is one: devices, their memory, cuts.
#pragma once

#include <optional>
#include <vector>

#include "planner/io/experiment/experiment_config.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// Device and memory of each rank of a case.
std::vector<DeviceId> devices_of(const CaseConfig& config);
Bytes memory_limit(const CaseConfig& config, const Cluster& cluster, DeviceId device);
std::vector<Bytes> memory_limits(const CaseConfig& config, const Cluster& cluster);
/// Likewise of the ranks of a plan, which may say its own `devices`.
std::vector<Bytes> memory_limits(const CaseConfig& config, const Cluster& cluster,
                                 const std::vector<DeviceId>& devices);

/// Cuts that are given, checked against the model; nothing if they are to be searched. Errors:
/// ConfigError.
std::optional<Partition> given_cuts(const CaseConfig& config, const Layers& layers);

}  // namespace pfeife
