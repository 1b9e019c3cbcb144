// Reading one case of an experiment: what experiment_config.cc offers to experiment_cases.cc.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/io/experiment_config.h"
#include "planner/io/yaml_node.h"

namespace pfeife {

/// The keys at the top of an experiment.
const std::vector<std::string>& experiment_keys();

/// A case but for its devices, microbatches and name. `folder` = the config's. Errors: ConfigError.
CaseConfig read_case(const YamlNode& root, const std::filesystem::path& folder,
                     const ExperimentRules& rules);

}  // namespace pfeife
