// What the joint search says when it is done: plans, bound and what it covers, reasons,
// certificate.
#pragma once

#include "planner/search/bound/any_order.h"
#include "planner/search/joint/contender.h"

namespace pfeife {

/// All that the search knows. Borrowed for the call.
struct Searched {
  const Problem& problem;  ///< without the schedules whose order is built for the costs
  const SearchOptions& options;
  const CutModel& model;
  const std::vector<Contender>& contenders;  ///< [problem.schedules]
  const std::vector<BuiltPlan>& built;       ///< of those
  const std::vector<AnyOrder>& any_order;    ///< of those that have cuts, if there is a plan
};

/// `effort`: that was spent.
Answer joint_outcome(const Searched& searched, std::vector<SearchStep> history, std::size_t effort);

/// The class that a bound of the problem's schedules covers.
Covered listed_class(const Problem& problem, const Bound& bound);
/// The bound, which holds for that class.
Claim listed_claim(const Problem& problem, Bound bound);

/// The claim of work_bound(), for all schedules of the problem.
Claim work_claim(const Problem& problem);

/// Makes a claim of the listed schedules one of the class that the fastest plan is in: those, or
/// those and any order at all. Where no order of the stages that the ranks have in `any_order` is
/// below the bound it covers them in either case. True: some may be below, so they are left out.
bool add_any_order(const std::vector<AnyOrder>& any_order, const Priced& fastest, Claim& claim);

}  // namespace pfeife
