// Zero-bubble orders built for given costs under a memory cap.
#pragma once

#include "planner/schedules/family.h"
#include "planner/schedules/order_descent.h"

namespace pfeife {

/// What zero_bubble_order may spend, and what it aims at.
struct ZeroBubbleOptions {
  /// Orders timed while the best few are improved.
  std::size_t moves = 2000;
  std::size_t rules = 1000;  ///< of the grid to try, in an order of merit; it has about 200
  /// Judge by the longest stretch of a rank from its first start to its last end: right when no
  /// rank's optimizer step waits for the others and steps follow each other (Qi et al. 2024,
  /// section 4). Otherwise by the time of the whole step, optimizer included.
  bool span = false;
};

/// The best order found for F, I and W of `microbatches` on the given stages, of their slices where
/// the costs have some. `room` [rank], bytes
/// for what F (StageCost::saved) and I (weight_saved) leave behind, empty = no limit. It is kept
/// unless a rank cannot hold one microbatch of all its stages. The time is without reductions, all
/// optimizer steps of a rank after its last action. Deterministic. Source: the grid is after
/// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, sec. 3.1; the rules in list_order.h
/// are ours.
TimedOrder zero_bubble_order(const StageCosts& costs, const Placement& placement,
                             std::size_t microbatches, const std::vector<Bytes>& room,
                             const ZeroBubbleOptions& options = {});

/// The orders of the families with a closed form, that placement and as many slices, their backward
/// split: zero_bubble_order tries them, too.
std::vector<Order> orders_in_closed_form(const Placement& placement, std::size_t microbatches,
                                         std::size_t slices);

/// Two stages a rank in the shape of a V, whole microbatches, and ZB-V is not within the memory:
/// zero_bubble_order then tries repeated building blocks, too.
bool wants_blocks(const OrderModel& model, const Placement& placement);

/// The grid's rules for so many stages and ranks, and the order that one of them gives: a small
/// part of what zero_bubble_order tries. Within the room as there; nullopt if it surely takes more
/// than `enough` (ns).
std::size_t order_rules(std::size_t stages, std::size_t ranks);
std::optional<Order> order_by_rule(const OrderModel& model, std::size_t rule, std::int64_t enough);

}  // namespace pfeife
