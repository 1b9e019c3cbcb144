#include "planner/ir/request/calibrated.h"

namespace pfeife {

Cluster calibrated(Cluster cluster, const Request& request) {
  for (DeviceKind& kind : cluster.kinds) {
    const Calibration* const calibration = calibration_of(request, kind.name);
    if (calibration == nullptr) continue;
    if (calibration->compute) kind.compute_factor = *calibration->compute;
    if (calibration->stage_overhead) kind.stage_overhead = *calibration->stage_overhead;
    cluster.file.clear();
  }
  return cluster;
}

}  // namespace pfeife
