// pfeife-run check: one step against the unsplit model.
#pragma once

#include <optional>

#include "runtime/launch/start_ranks.h"
#include "runtime/plan_request.h"

namespace pfeife {

struct CheckRequest {
  PlanRequest what;
  LaunchOptions launch;
  std::optional<double> tolerance;  ///< largest |g - g0| / |g0|; empty = by type
};

/// Prints what was compared, and returns the exit code.
int check_verb(CheckRequest request);

}  // namespace pfeife
