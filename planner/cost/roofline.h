// Profile of a graph on a device from its data sheet: time = max(FLOPs at the product efficiency,
// bytes at the memory bandwidth) + a fixed overhead a kernel. Nothing is fitted to a measured
// model.
#pragma once

#include "planner/ir/cluster.h"
#include "planner/ir/graph.h"
#include "planner/ir/profile.h"

namespace pfeife {

/// F, I and W time, saved, weight-saved and temporary bytes of every node and optimizer time of
/// every parameter, for one microbatch of `training.microbatch_size` samples, which must be the
/// graph's. Operators that the table does not know are charged by bytes and named in `warnings`.
/// Linear.
Profile roofline_profile(const Graph& graph, const DeviceKind& device, const Training& training);

/// FLOPs of the forward pass of the whole graph.
Flops forward_flops(const Graph& graph);

}  // namespace pfeife
