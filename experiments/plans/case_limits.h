// What a case says of its plans, before there is one: devices, their memory, cuts.
#pragma once

#include <optional>
#include <vector>

#include "planner/ir/machine/allocator_settings.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/request/request.h"

namespace pfeife {

/// Device and memory of each rank of a case: less the reserve and, with an allocator, the margin.
std::vector<DeviceId> devices_of(const Request& config);
Bytes memory_limit(const Request& config, const Cluster& cluster, DeviceId device);
std::vector<Bytes> memory_limits(const Request& config, const Cluster& cluster);
/// The limits of the ranks of a plan, which may say its own `devices`.
std::vector<Bytes> memory_limits(const Request& config, const Cluster& cluster,
                                 const std::vector<DeviceId>& devices);

/// How many communicators of NCCL each rank has: of the pipeline, of its replicas.
std::int64_t communicators(const Request& config);
/// PyTorch's caching allocator reserves more than it hands out; nothing where some device has none.
std::optional<AllocatorSettings> allocator_of(const Request& config, const Cluster& cluster);

/// Cuts that are given, checked against the model; nothing if they are to be searched. Errors:
/// RefusedWish.
std::optional<Partition> given_cuts(const Request& config, const Layers& layers);

}  // namespace pfeife
