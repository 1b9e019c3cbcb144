#include "planner/ir/request/taken_plan.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace pfeife {

PlanRule PlanRule::nearly() const {
  PlanRule rule = *this;
  rule.as_fast = kNearlyAsFast;
  return rule;
}

std::size_t taken_plan(const std::vector<PlanMerits>& plans, const PlanRule& rule) {
  const auto fits = [](const PlanMerits& plan) { return plan.fullness <= 1; };
  const bool some_fit = std::ranges::any_of(plans, fits);
  const auto counts = [&](const PlanMerits& plan) { return fits(plan) || !some_fit; };
  double bubble = std::numeric_limits<double>::infinity();  // the largest that may be taken
  if (rule.max_bubble) {
    for (const PlanMerits& plan : plans)
      if (counts(plan)) bubble = std::min(bubble, plan.bubble);
    bubble = std::max(bubble, *rule.max_bubble);
  }
  const auto may_be_taken = [&](const PlanMerits& plan) {
    return counts(plan) && plan.bubble <= bubble;
  };
  Nanoseconds least = Nanoseconds::max();
  for (const PlanMerits& plan : plans)
    if (may_be_taken(plan)) least = std::min(least, plan.time);
  const auto longer =
      Nanoseconds{static_cast<std::int64_t>(rule.as_fast * static_cast<double>(least.count()))};
  const auto key = [&](const PlanMerits& plan) {
    return std::tuple(!may_be_taken(plan) || plan.time > least + longer, plan.fullness, plan.time);
  };
  return static_cast<std::size_t>(std::ranges::min_element(plans, {}, key) - plans.begin());
}

}  // namespace pfeife
