#include "planner/search/price/price.h"

#include "planner/schedules/families.h"

namespace pfeife {

Priced priced(Choice choice, Prices prices) {
  return {std::move(choice), prices.estimate, std::move(prices.peak_memory),
          std::make_shared<const CostedRows>(
              CostedRows{std::move(prices.costs), std::move(prices.lowered)})};
}

Priced price(const Problem& problem, Choice choice) {
  Prices prices = evaluate(problem.layers, problem.cluster, compute_only(choice), choice.placement,
                           choice.partition, problem.memory_rule, choice.recomputed);
  return priced(std::move(choice), std::move(prices));
}

std::optional<Priced> fitting(const Problem& problem, Choice choice) {
  Priced plan = price(problem, std::move(choice));
  if (!fits(plan.peak_memory, problem.memory_limit)) return std::nullopt;
  return plan;
}

}  // namespace pfeife
