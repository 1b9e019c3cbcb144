#include "planner/search/orders/pareto.h"

#include <algorithm>

namespace pfeife {

std::vector<Priced> pareto_front(std::vector<Priced> plans) {
  std::ranges::stable_sort(plans, {}, [](const Priced& plan) {
    return std::pair{plan.estimate, largest_peak(plan)};
  });
  std::vector<Priced> front;
  for (Priced& plan : plans)
    if (front.empty() || largest_peak(plan) < largest_peak(front.back()))
      front.push_back(std::move(plan));
  return front;
}

}  // namespace pfeife
