// A plan with all that is known of it, beside others: the case's own and its baselines.
//   for (const Contestant& plan : planned.contestants)
//     if (plan.fits()) std::puts(plan.name.c_str());
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/result/need.h"
#include "planner/ir/result/plan.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

/// A plan in full, with its costs and its estimate.
struct PricedPlan {
  Plan plan;
  StageCosts costs;
  Trace estimated;  ///< with the memory of every rank
};

/// A plan beside others, or the reason why there is none: `plan` then has the schedule's spec
/// alone.
struct Contestant : PricedPlan {
  std::string name;    ///< "planned", or the baseline's
  std::string reason;  ///< why there is no such plan; "" = there is
  Need need;
  std::optional<Trace> simulated;

  bool possible() const { return reason.empty(); }
  /// There is such a plan, and it fits into the memory of its devices and their hosts.
  bool fits() const { return possible() && need.fits(); }
  /// The trace of the best engine that does not run the plan.
  const Trace& predicted() const { return simulated ? *simulated : estimated; }
  /// Errors: RuntimeFault with the reason if there is no such plan.
  const PricedPlan& priced() const;
};

}  // namespace pfeife
