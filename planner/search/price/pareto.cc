#include "planner/search/price/pareto.h"

#include <algorithm>

namespace pfeife {

std::vector<Priced> pareto_front(std::vector<Priced> plans,
                                 const std::vector<Bytes>& memory_limit) {
  const auto full = [&](const Priced& plan) { return fullness(plan.peak_memory, memory_limit); };
  std::ranges::stable_sort(plans, {}, [&](const Priced& plan) {
    return std::pair{plan.estimate, full(plan)};
  });
  std::vector<Priced> front;
  for (Priced& plan : plans)
    if (front.empty() || full(plan) < full(front.back())) front.push_back(std::move(plan));
  return front;
}

}  // namespace pfeife
