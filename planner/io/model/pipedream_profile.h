// Profiles as PipeDream publishes them (Narayanan et al. 2019; msr-fiddle/pipedream, profiler/).
//
//   node7 -- LSTM(2048, 1024) -- forward_compute_time=3.190, backward_compute_time=5.348,
//     activation_size=[6291456.0; 131072.0; 131072.0], parameter_size=50364416.000
//   <tab>node6 -- node7
//
// Times in milliseconds, sizes in bytes. A list of activations are several outputs;
// `__getitem__(i)` reads one of them. As in PipeDream's planner, a node keeps its output for
// backward.
#pragma once

#include <filesystem>

#include "planner/io/files/text_file.h"
#include "planner/io/model/import_options.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// Layers of the profile, in topological order. ConfigError with line and column for lines that are
/// neither node nor edge, nodes that are missing or there twice, and cycles.
Layers read_pipedream_profile(const std::filesystem::path& path, const ImportOptions& options = {});
/// The same from text at hand.
Layers layers_of_pipedream(const TextFile& file, const ImportOptions& options = {});

}  // namespace pfeife
