// pfeife-run check: one step against the unsplit model.
#pragma once

#include <optional>

#include "runtime/plan_request.h"
#include "runtime/start_ranks.h"

namespace pfeife {

struct CheckRequest {
  PlanRequest what;
  LaunchOptions launch;
  std::optional<double> tolerance;  ///< largest |g - g0| / |g0|; empty = by precision
};

/// Prints what was compared, and returns the exit code.
int check_verb(CheckRequest request);

}  // namespace pfeife
