// The cluster file of a plan with what a run of it showed.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "experiments/measure/calibrated_curve.h"
#include "experiments/measure/calibrated_link.h"

namespace pfeife {

/// Whether a cluster file says the latency of the ways over a link by one figure: the link is in
/// one route, which has a latency, or has none and leads over nothing else.
bool has_own_latency(const std::filesystem::path& file, const std::string& link);

/// `file` with these gemm_efficiency curves of `kind` ([precision]) and with bandwidths and
/// latencies ([link]) in the place of its own, and a note on each. Errors: ConfigError.
std::string calibrated_cluster(const std::filesystem::path& file, const std::string& kind,
                               const std::map<std::string, CalibratedCurve>& curves,
                               const std::map<std::string, CalibratedLink>& links);

}  // namespace pfeife
