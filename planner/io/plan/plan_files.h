// The files that a plan's costs are made of, as plan.yaml has them.
#pragma once

#include "planner/io/files/yaml_node.h"
#include "planner/io/files/yaml_value.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

YamlValue files_value(const PlanFiles& files);
/// Errors: ConfigError at what is wrong.
PlanFiles read_files(const YamlNode& node);

}  // namespace pfeife
