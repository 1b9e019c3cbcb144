// Which cases of a sweep take plans from which: a case that allows as much as another one, and more
// memory or more effort, takes the other's plan if that is faster than its own. So a sweep never
// gets slower as more is allowed, whatever is computed first and in how many processes. A case
// computed alone has its own plan.
#pragma once

#include "experiments/inputs/inputs.h"
#include "planner/io/experiment/experiment_config.h"

namespace pfeife {

/// Sets CaseConfig::handed of all cases that differ in nothing but plan.reserve, plan.iterations
/// and the memory of device kinds. Reads their clusters; where one cannot be read, nothing is set.
void hand_plans(Experiment& experiment, Inputs& inputs);

}  // namespace pfeife
