// What a config's reader has to know of families, orders and the files that the config names.
#pragma once

#include "experiments/inputs/inputs.h"
#include "planner/io/experiment/experiment_config.h"

namespace pfeife {

/// Reads clusters by `inputs`, which must outlive it.
ExperimentRules rules_of(Inputs& inputs);

}  // namespace pfeife
