#include "planner/search/orders/pareto.h"

#include <algorithm>

namespace pfeife {

Bytes largest_peak(const PlannedSchedule& plan) {
  return plan.peak_memory.empty() ? Bytes{0} : *std::ranges::max_element(plan.peak_memory);
}

std::vector<PlannedSchedule> pareto_front(std::vector<PlannedSchedule> plans) {
  std::ranges::stable_sort(plans, {}, [](const PlannedSchedule& plan) {
    return std::pair{plan.estimate, largest_peak(plan)};
  });
  std::vector<PlannedSchedule> front;
  for (PlannedSchedule& plan : plans)
    if (front.empty() || largest_peak(plan) < largest_peak(front.back()))
      front.push_back(std::move(plan));
  return front;
}

}  // namespace pfeife
