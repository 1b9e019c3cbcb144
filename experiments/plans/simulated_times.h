// What the simulator says of plans that the search has priced.
#pragma once

#include <span>
#include <vector>

#include "experiments/plans/evaluate.h"
#include "planner/ir/trace/trace.h"
#include "planner/search/problem.h"

namespace pfeife {

struct SimulatedStep {
  Nanoseconds alone{0};  ///< if no transfer waits for another one or shares a link with it
  Trace trace;
};

/// [plan] As the config of `inputs` simulates, without jitter. `workers`: processes and threads.
/// Errors: RuntimeFault.
std::vector<SimulatedStep> simulated_steps(const CaseInputs& inputs, const Problem& problem,
                                           std::span<const Priced> plans, std::size_t workers);

}  // namespace pfeife
