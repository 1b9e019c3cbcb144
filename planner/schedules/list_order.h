// Orders built from scratch, event by event: whenever a rank is free it takes what a few rules say.
#pragma once

#include <limits>
#include <optional>

#include "planner/schedules/order_model.h"

namespace pfeife {

/// The rules; their product is a grid that is tried out whole.
struct ListRules {
  /// A forward that is ready may delay a backward that is known to arrive: never, only before the
  /// rank's first backward, always.
  enum class Crowd : std::uint8_t { Never, WarmUp, Always };
  /// When W fills a gap: if it ends before anything else can arrive; also if the gap is at least
  /// half of it; also if this rank has idled most so far; always.
  enum class Fill : std::uint8_t { Fitting, Half, Fairly, Always };
  Crowd crowd = Crowd::Always;
  Fill fill = Fill::Fitting;
  bool forward_first = false;  ///< a forward before a backward when both are ready
  bool deep_first = true;      ///< of several stages, the last one; false: groups of D microbatches
  /// Forwards in flight at most: as memory allows; as 1F1B; one less than twice that; what a rank
  /// can do until its first gradient may be back, rounded down or up.
  enum class Flight : std::uint8_t { Memory, Once, Twice, Within, Until };
  Flight flight = Flight::Memory;
};

/// Never deadlocks. Within `room` unless a rank cannot hold one microbatch of all its stages.
/// nullopt if it surely takes more than `enough` (ns).
std::optional<Order> list_order(const OrderModel& model, const ListRules& rules,
                                std::int64_t enough = std::numeric_limits<std::int64_t>::max());

}  // namespace pfeife
