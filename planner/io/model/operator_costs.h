// What a user says of operators without a cost of their own: `{my::op: {flops: "2*m*n*k", bytes:
// io}}`.
#pragma once

#include <vector>

#include "planner/io/files/yaml.h"
#include "planner/ir/model/operator_cost.h"

namespace pfeife {

/// Errors: ConfigError at a name without a namespace, or at what is no formula.
std::vector<OperatorCost> operator_costs(const YamlNode& node);
YamlValue operators_value(const std::vector<OperatorCost>& costs);

}  // namespace pfeife
