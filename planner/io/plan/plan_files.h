// The files that a plan's costs are made of, as plan.yaml has them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/io/files/yaml_node.h"
#include "planner/io/files/yaml_value.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

/// What `format` of a model may be.
const std::vector<std::pair<std::string, ModelFormat>>& model_formats();

/// {dp, zero, overlap_reductions}: the key `parallel` of a config and of plan.yaml's files.
YamlValue replicas_value(const Replicas& replicas);
/// Errors: ConfigError at what is wrong.
Replicas read_replicas(const YamlNode& node);

YamlValue files_value(const PlanFiles& files);
/// Errors: ConfigError at what is wrong.
PlanFiles read_files(const YamlNode& node);

}  // namespace pfeife
