// The door of the planner: a problem goes in, the best few plans come out.
#pragma once

#include "planner/ir/result/plan.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Chooses cuts and schedule together. Deterministic for equal input, whatever `threads`.
SearchOutcome search(const Problem& problem, const SearchOptions& options);

/// The choices of a planned schedule as a plan on `device_of_rank`, its schedule compute-only:
/// priced_plan() of planner/cost makes the rest.
Plan plan_of(const PlannedSchedule& planned, const std::vector<DeviceId>& device_of_rank);

}  // namespace pfeife
