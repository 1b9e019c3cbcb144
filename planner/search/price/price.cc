#include "planner/search/price/price.h"

#include "planner/cost/allocator/played_ranks.h"
#include "planner/cost/estimate/memory.h"
#include "planner/schedules/families.h"

namespace pfeife {

Priced priced(Choice choice, Prices prices) {
  choice.receives = prices.receives;
  return {std::move(choice), prices.estimate, std::move(prices.peak_memory),
          std::make_shared<const CostedRows>(
              CostedRows{std::move(prices.costs), std::move(prices.lowered)})};
}

/// Received as ready.
static Prices evaluated(const Problem& problem, const Choice& choice) {
  return evaluate(problem.layers, problem.cluster, compute_only(choice), choice.placement,
                  choice.partition, problem.memory_rule, choice.activations, problem.norm,
                  choice.spec.slice_lengths);
}

std::vector<Bytes> must_fit(const Problem& problem, const Choice& choice, const Prices& prices) {
  if (!problem.allocator || problem.memory_rule != MemoryRule::Lifetimes ||
      !fits(prices.peak_memory, problem.memory_limit))
    return prices.peak_memory;
  Plan plan;
  plan.partition = choice.partition, plan.placement = choice.placement;
  plan.activations = choice.activations;
  plan.schedule = prices.lowered, plan.peak_memory = prices.peak_memory;
  return reserved_memory(plan, problem.layers, *problem.allocator, problem.memory_limit);
}

std::vector<Bytes> must_fit(const Problem& problem, const Priced& plan) {
  if (!problem.allocator) return plan.peak_memory;
  if (!plan.rows) {
    Prices prices = evaluated(problem, plan);
    if (plan.receives == Receives::AtNeed)
      prices = received_late(std::move(prices), plan.placement);
    return must_fit(problem, plan, prices);
  }
  return must_fit(problem, plan,
                  {.costs = {}, .lowered = plan.rows->lowered, .peak_memory = plan.peak_memory});
}

/// `fit`: what must fit does.
static Priced price(const Problem& problem, Choice choice, bool& fit) {
  Prices prices = evaluated(problem, choice);
  fit = fits(must_fit(problem, choice, prices), problem.memory_limit);
  // Late receives are checked against rows that hang by transfers, not by what joins S and T.
  const bool late =
      !shares_head(choice.spec) && (choice.receives == Receives::AtNeed ||
                                    (problem.receives == Receives::AtNeed &&
                                     problem.memory_rule == MemoryRule::Lifetimes && !fit));
  if (late) {
    prices = received_late(std::move(prices), choice.placement);
    fit = fits(must_fit(problem, choice, prices), problem.memory_limit);
  }
  return priced(std::move(choice), std::move(prices));
}

Priced price(const Problem& problem, Choice choice) {
  bool fit = false;
  return price(problem, std::move(choice), fit);
}

std::optional<Shortage> host_shortage(const Problem& problem, const Priced& plan) {
  if (!plan.activations.offloads()) return std::nullopt;
  const Need need{.host = memory_of_hosts(plan.rows->lowered, plan.rows->costs, plan.placement,
                                          problem.cluster),
                  .host_limit = problem.cluster->host_memory};
  return need.host_shortage();
}

std::optional<Priced> fitting(const Problem& problem, Choice choice) {
  choice.receives = Receives::AsReady;
  bool fit = false;
  Priced plan = price(problem, std::move(choice), fit);
  if (!fit || host_shortage(problem, plan)) return std::nullopt;
  return plan;
}

}  // namespace pfeife
