// From a plan to what its costs are made of: the files that plan.yaml names.
#pragma once

#include <filesystem>

#include "planner/inputs/read_layers.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

struct PlanInputs {
  Cluster cluster;  ///< with the overheads of stages that a profile has measured
  Layers layers;
};

/// The model's, of a plan in `folder` that names its files, by paths that can be opened.
ModelFiles model_files(const Plan& plan, const std::filesystem::path& folder);
/// How it trains its model.
ModelUse model_use(const Plan& plan);

/// Reads the files that `plan.files` names from `folder`, the plan's. Errors: ConfigError if the
/// plan names none, if one is not there, or if it is not the one that the plan was made from.
PlanInputs read_plan_inputs(const Plan& plan, const std::filesystem::path& folder);

}  // namespace pfeife
