#include "planner/search/price/price.h"

#include "planner/schedules/families.h"

namespace pfeife {

Priced priced(Choice choice, Prices prices) {
  choice.receives = prices.receives;
  return {std::move(choice), prices.estimate, std::move(prices.peak_memory),
          std::make_shared<const CostedRows>(
              CostedRows{std::move(prices.costs), std::move(prices.lowered)})};
}

Priced price(const Problem& problem, Choice choice) {
  Prices prices = evaluate(problem.layers, problem.cluster, compute_only(choice), choice.placement,
                           choice.partition, problem.memory_rule, choice.recomputed, problem.norm);
  const bool late =
      choice.receives == Receives::AtNeed ||
      (problem.receives == Receives::AtNeed && problem.memory_rule == MemoryRule::Lifetimes &&
       !fits(prices.peak_memory, problem.memory_limit));
  if (late) prices = received_late(std::move(prices), choice.placement);
  return priced(std::move(choice), std::move(prices));
}

std::optional<Priced> fitting(const Problem& problem, Choice choice) {
  choice.receives = Receives::AsReady;
  Priced plan = price(problem, std::move(choice));
  if (!fits(plan.peak_memory, problem.memory_limit)) return std::nullopt;
  return plan;
}

}  // namespace pfeife
