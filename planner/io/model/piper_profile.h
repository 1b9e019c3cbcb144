// Profiles as Piper publishes them (Tarnawski, Narayanan, Phanishayee 2021; msr-fiddle/piper).
//
// JSON: nodes with, per degree of tensor parallelism, variants ("vanilla", "activation recomp") of
// `timePerSample` (forward and backward of one microbatch), `parameterSize`, and memory =
// `memoryUsageA` x microbatches in flight + `memoryUsageB`; edges with `communicationCost` in
// bytes. Read is degree 1, vanilla. Piper's own devices, bandwidth and batch are not read: the
// cluster and the cases say them.
#pragma once

#include <filesystem>

#include "planner/io/files/text_file.h"
#include "planner/io/model/import_options.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// Layers of the profile, in topological order. `time_unit` is what `timePerSample` counts: the
/// published files differ (bert32a100.json seconds, gnmt.json milliseconds). Forward takes a third
/// of the time. Static memory is memoryUsageB (parameters and gradients) and the optimizer's state.
/// ConfigError for other JSON, missing degrees and variants, and cycles.
Layers read_piper_profile(const std::filesystem::path& path, Nanoseconds time_unit,
                          const ImportOptions& options = {});
/// The same from text at hand.
Layers layers_of_piper(const TextFile& file, Nanoseconds time_unit,
                       const ImportOptions& options = {});

}  // namespace pfeife
