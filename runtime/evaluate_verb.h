// pfeife-run evaluate: the model's loss over a folder of samples, forward only.
#pragma once

#include <string>

#include "runtime/launch/start_ranks.h"
#include "runtime/plan_request.h"

namespace pfeife {

struct EvaluateRequest {
  PlanRequest what;
  LaunchOptions launch;
  std::string data;    ///< folder of .npy files
  std::string resume;  ///< folder of checkpoints, or one, whose parameters are taken; "" = none
};

/// Evaluates every sample once by the forwards of a plan, of training steps or forward only, prints
/// loss, rate and memory, and returns the exit code.
int evaluate_verb(EvaluateRequest request);

}  // namespace pfeife
