// A cluster as its calibration says: what makes published figures those of a measured system.
#pragma once

#include "planner/ir/machine/cluster.h"
#include "planner/ir/request/request.h"

namespace pfeife {

/// The cluster, each kind of devices with the calibration that holds for it. What a kind's file
/// says of a calibration is replaced. A cluster that changes is of no file any more.
Cluster calibrated(Cluster cluster, const Request& request);

}  // namespace pfeife
