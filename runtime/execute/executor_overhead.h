// What the executor itself costs: steps of stages that do nothing.
#pragma once

#include "planner/ir/basics/units.h"

namespace pfeife {

/// Time of this thread for one action of a rank that executes `stages` empty stages and
/// `microbatches` microbatches a step: median over `steps` steps. Half of the actions hand a value
/// to a stage of the same rank.
Nanoseconds executor_overhead(std::size_t stages, std::size_t microbatches, int steps);

}  // namespace pfeife
