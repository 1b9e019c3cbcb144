// Runs of 2023 to 2026 of many sources, devices and formats, as runs of a mesh; a row each of
// published2026.csv.
#pragma once

#include <filesystem>
#include <vector>

#include "experiments/studies/published_runs/runs.h"

namespace pfeife::published {

/// A Source for each source, device and format, in the order of the file. ConfigError.
std::vector<Source> read_recent_sources(const std::filesystem::path& data,
                                        const std::filesystem::path& configs);

}  // namespace pfeife::published
