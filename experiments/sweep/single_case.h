// A config with one case, to be planned again and again with other microbatches.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/pfeife.h"
#include "planner/io/experiment/experiment_config.h"

namespace pfeife {

struct SingleCase {
  CaseConfig config;
  Model model;
  Cluster cluster;

  /// The config's request without baselines, simulation and measurement.
  Request request() const;
  /// The best plan by the estimate. Errors: ConfigError at the key that is refused; RuntimeFault if
  /// nothing fits.
  Planned planned(const Request& request, std::size_t threads) const;
};

/// Reads the case. `settings`: as --set has them. Errors: ConfigError of the config; if it has
/// several cases, chooses a mesh, or is to be measured first. `verb`: for messages, "pack".
SingleCase read_single_case(const std::filesystem::path& file,
                            const std::vector<std::string>& settings, const std::string& verb);

}  // namespace pfeife
