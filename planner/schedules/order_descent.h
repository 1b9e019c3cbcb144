// A given order made better: actions of a longest path are moved within their rank, as in the
// neighbourhoods of job-shop scheduling (Nowicki and Smutnicki, 1996), by late acceptance (Burke
// and Bykov, 2017).
#pragma once

#include <functional>

#include "planner/schedules/order_model.h"

namespace pfeife {

struct TimedOrder {
  Order order;
  std::int64_t time = 0;  ///< ns, as OrderClock judges
};

/// The best of `moves` moves from `start`, which must not deadlock; never worse than it. Ranks that
/// kept within their room still do. Deterministic. `moves` times the actions.
TimedOrder improve(const OrderModel& model, TimedOrder start, std::size_t moves);

/// The same with `fits` in place of the model's rooms; it must hold of `start` and is asked of
/// orders that are fast enough alone. Other seeds make other moves.
using Fits = std::function<bool(const Order&)>;
TimedOrder improve(const OrderModel& model, TimedOrder start, std::size_t moves, const Fits& fits,
                   std::uint64_t seed = 0);

}  // namespace pfeife
