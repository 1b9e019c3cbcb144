// pfeife-run train: timed steps.
#pragma once

#include "runtime/plan_request.h"
#include "runtime/start_ranks.h"

namespace pfeife {

struct TrainRequest {
  PlanRequest what;
  LaunchOptions launch;
  int steps = 10;
  std::string out;  ///< measurement.csv; "" = none
};

/// Trains, prints time and losses, and returns the exit code.
int train_verb(const TrainRequest& request);

}  // namespace pfeife
