// Which of several plans is taken: one rule, whether their times are estimated or simulated.
//   const PlanMerits& best = plans[taken_plan(plans, {.as_fast = 0.01})];
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

inline constexpr double kNearlyAsFast = 0.01;

struct PlanRule {
  /// Plans that take at most this share longer than the fastest count as fast.
  double as_fast = 0.001;
  /// Largest share of devices x step in which nothing is computed; absent = any.
  std::optional<double> max_bubble = {};
  /// How many of the fastest plans of a search every engine times again.
  std::size_t compared = 5;

  /// The same with kNearlyAsFast as `as_fast`.
  PlanRule nearly() const;
  bool allows(double bubble) const { return !max_bubble || bubble <= *max_bubble; }
};

/// What the rule asks of a plan.
struct PlanMerits {
  Nanoseconds time{0};
  double fullness = 0;  ///< of its fullest device; above 1: it does not fit
  double bubble = 0;    ///< as in PlanRule::max_bubble
};

/// The index of the plan that is taken. Left are those that fit (all, if none does), of these those
/// within `max_bubble` (if none is, those with the smallest bubble), and of these those that count
/// as fast beside the fastest of them. The least full one is taken; of equals the fastest, then the
/// first. `plans` must not be empty.
std::size_t taken_plan(const std::vector<PlanMerits>& plans, const PlanRule& rule);

}  // namespace pfeife
