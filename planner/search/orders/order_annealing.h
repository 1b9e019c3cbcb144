// Cuts that move while the order is built anew for every one of them. Under a tight memory limit
// the best cuts give the first ranks fewer layers, so that they have room for more microbatches;
// no order that is kept shows that.
#pragma once

#include <span>

#include "planner/search/orders/order_builder.h"

namespace pfeife {

/// The best order and cuts of `tries` random moves of cuts from `from`, each with the orders of two
/// rules (zb_greedy.h): nullptr if nothing that fits was found. `evaluated` counts the moves.
/// Deterministic.
std::unique_ptr<Candidates> anneal_orders(const OrderBuilder& builder, const Cuts& from,
                                          const std::vector<bool>& recompute, std::size_t tries,
                                          std::uint64_t seed, std::size_t& evaluated);

/// A rule of the grid (zb_greedy.h) and what the order that it gives is worth: step time in ns, or
/// Candidates::kTooFull + bytes too many; infinite if it is above the limit.
struct RuledOrder {
  std::size_t rule = 0;
  double score = 0;
};
/// The best of these rules, the first of them if none is worth `limit` or less.
RuledOrder best_rule(const OrderModel& model, std::span<const std::size_t> rules, double limit);

}  // namespace pfeife
