// What the joint search says when it is done: plans, bound and what it covers, reasons,
// certificate.
#pragma once

#include "planner/search/contender.h"

namespace pfeife {

/// All that the search knows. Borrowed for the call.
struct Searched {
  const Problem& problem;                     ///< without the schedules in `to_build`
  const std::vector<ScheduleSpec>& to_build;  ///< schedules whose order is built for the costs
  const SearchOptions& options;
  const CutModel& model;
  const std::vector<Contender>& contenders;  ///< [problem.schedules]
  const std::vector<BuiltPlan>& built;       ///< [to_build]
};

SearchOutcome joint_outcome(const Searched& searched, std::vector<SearchStep> history);

}  // namespace pfeife
