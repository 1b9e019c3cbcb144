#include "planner/ir/result/priced.h"

#include <algorithm>
#include <tuple>

namespace pfeife {

Bytes largest_peak(const Priced& plan) {
  return plan.peak_memory.empty() ? Bytes{0} : *std::ranges::max_element(plan.peak_memory);
}

std::size_t taken_plan(const std::vector<TimeAndFullness>& plans, double as_fast) {
  const auto fits = [](const TimeAndFullness& plan) { return plan.fullness <= 1; };
  const bool some_fit = std::ranges::any_of(plans, fits);
  const auto may_be_taken = [&](const TimeAndFullness& plan) { return fits(plan) || !some_fit; };
  Nanoseconds least = Nanoseconds::max();
  for (const TimeAndFullness& plan : plans)
    if (may_be_taken(plan)) least = std::min(least, plan.time);
  const auto longer =
      Nanoseconds{static_cast<std::int64_t>(as_fast * static_cast<double>(least.count()))};
  const auto key = [&](const TimeAndFullness& plan) {
    return std::tuple(!may_be_taken(plan) || plan.time > least + longer, plan.fullness, plan.time);
  };
  return static_cast<std::size_t>(std::ranges::min_element(plans, {}, key) - plans.begin());
}

}  // namespace pfeife
