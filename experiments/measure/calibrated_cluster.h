// The cluster file of a plan with what a run of it showed.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "experiments/measure/calibrated_curve.h"
#include "experiments/measure/calibrated_link.h"

namespace pfeife {

/// `file` with these gemm_efficiency curves of `kind` ([precision]) and bandwidths ([link]) in the
/// place of its own, and a note on each. Errors: ConfigError.
std::string calibrated_cluster(const std::filesystem::path& file, const std::string& kind,
                               const std::map<std::string, CalibratedCurve>& curves,
                               const std::map<std::string, CalibratedLink>& links);

}  // namespace pfeife
