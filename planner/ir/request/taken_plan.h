// Which of several plans is taken: one rule, by whatever figure their times are compared.
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
  /// Share of devices x step without compute that a plan may have at most; absent = any.
  std::optional<double> max_bubble = {};
  /// Plans of a search, the fastest, that every engine compares.
  std::size_t compared = 5;

  /// The rule by which plans nearly as fast as the fastest count as fast.
  PlanRule nearly() const;
  bool allows(double bubble) const { return !max_bubble || bubble <= *max_bubble; }
};

/// What the rule asks of a plan.
struct PlanMerits {
  Nanoseconds time{0};
  double fullness = 0;  ///< of its fullest device; above 1: it does not fit
  double bubble = 0;    ///< as in PlanRule::max_bubble
};

/// The number of the plan that is taken: of those that fit (of all, if none does) and have an
/// allowed bubble, those that count as fast; of these the one that is least full, the fastest, the
/// first. If no bubble is allowed, the least bubble. At least one plan.
std::size_t taken_plan(const std::vector<PlanMerits>& plans, const PlanRule& rule);

}  // namespace pfeife
