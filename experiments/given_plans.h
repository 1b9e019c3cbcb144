// Plans and schedules that a config names instead of having them searched.
#pragma once

#include "experiments/candidate.h"

namespace pfeife {

/// A schedule from a file, lowered if it has no transfers, on given cuts. Errors: ConfigError if
/// it does not fit the model or cannot run.
Candidate from_schedule(const CaseConfig& config, const Layers& layers, const Cluster& cluster);

/// A plan from a file. Errors: ConfigError if it is of another model, or cannot run.
Candidate from_plan(const CaseConfig& config, const Layers& layers, const Cluster& cluster);

}  // namespace pfeife
