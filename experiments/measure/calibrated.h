// What a run says about the next one: from its traces to a profile of the model's graph, and to the
// efficiency curves and links of a cluster file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "experiments/measure/calibrated_parts.h"
#include "experiments/measure/compared.h"

namespace pfeife {

/// Steps are counted from 0: even ones make the figures, odd ones judge them.
struct CalibratedProfile {
  std::string text;  ///< profile.yaml
  std::size_t steps = 0, held_out = 0;
  Nanoseconds step{0}, compute{0};                ///< measured, medians of the steps held out
  Nanoseconds step_before{0}, compute_before{0};  ///< estimated by what the plan was made from
  Nanoseconds step_after{0}, compute_after{0};    ///< estimated by the profile and the links
};

struct Calibrated {
  std::string kind;                               ///< of device
  std::optional<CalibratedProfile> profile;       ///< of plans of a graph
  std::map<std::string, CalibratedCurve> curves;  ///< by precision, of traces with shapes
  std::map<std::string, CalibratedLink> links;    ///< by name in the cluster file
  std::string cluster;                            ///< the cluster file with them; "" = none
};

/// Calibrates by the traces of a run of `plan` (plan.yaml or its folder, as compare_with_traces).
/// The profile has the times of the plan's own profile or roofline, those of a stage's F, of its I,
/// of its W and of its optimizer step each multiplied by what makes their sum the measured one
/// (median over steps of the mean over microbatches); a B divides its time between I and W as they
/// were. Bytes stay. Errors: ConfigError, also for plans that recompute, clusters of several kinds
/// of devices, fewer than two steps, and where there is neither a graph, nor a product with shapes,
/// nor a message that was alone on its way and waited for.
Calibrated calibrate_by_traces(const std::filesystem::path& plan,
                               std::span<const std::filesystem::path> traces);

}  // namespace pfeife
