// An order without its gaps: whenever a rank would wait, it takes the first later action of its row
// that is ready, if the rest of the row still keeps within its memory.
//
// Source: the idea to squeeze and reorder a repeated block is that of Qi, Wan et al., "Pipeline
// Parallelism with Controllable Memory", NeurIPS 2024, sec. 3; the rule is ours.
#pragma once

#include <optional>

#include "planner/schedules/order_descent.h"

namespace pfeife {

/// From the start, everything early, or from the end, everything late. Ranks that keep within their
/// room still do. `order` must not deadlock; whole microbatches. The result need not be faster.
enum class Fill : std::uint8_t { Early, Late };
Order backfilled(const OrderModel& model, const Order& order, Fill fill);

/// The fastest of a few rounds of both, each from the one before.
TimedOrder backfilled(const OrderModel& model, Order order);

}  // namespace pfeife
