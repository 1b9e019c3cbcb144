// pfeife-run train: steps, timed.
#pragma once

#include <optional>
#include <string>

#include "runtime/plan_request.h"
#include "runtime/start_ranks.h"

namespace pfeife {

struct TrainRequest {
  PlanRequest what;
  LaunchOptions launch;
  int steps = 10;
  std::string out;  ///< measurement.csv; "" = none
  /// Waits as long as this trace.json's estimated actions instead of computing; "" = the one beside
  /// the plan.
  std::optional<std::string> timed;
};

/// Trains, prints time and losses, and returns the exit code.
int train_verb(const TrainRequest& request);

}  // namespace pfeife
