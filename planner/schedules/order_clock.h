// How long an order takes: every action begins when its rank is free and what it waits for is
// there.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "planner/schedules/order_model.h"

namespace pfeife {

/// Runs orders of one model again and again.
class OrderClock {
 public:
  static constexpr std::int64_t kAnyTime = std::numeric_limits<std::int64_t>::max();

  explicit OrderClock(const OrderModel& model);

  /// Time of the order (ns): max over ranks of last end + tail; nullopt if it deadlocks or takes
  /// more than `most`.
  std::optional<std::int64_t> run(const Order& order, std::int64_t most = kAnyTime);
  /// The same of an order that is the one of `before`, which ran to its end, but for the positions
  /// of one rank from `first` on. What began earlier than what stood there is not run again.
  std::optional<std::int64_t> run_from(const OrderClock& before, const Order& order,
                                       std::size_t rank, std::size_t first,
                                       std::int64_t most = kAnyTime);

  /// A longest path of the last run, which ended, from its end to its start: positions in the rows.
  struct Place {
    std::size_t rank = 0, position = 0;
  };
  std::vector<Place> critical_path(const Order& order) const;

 private:
  std::size_t index(std::size_t part, std::size_t stage, std::size_t microbatch) const {
    return (part * model_.stages + stage) * model_.microbatches + microbatch;
  }
  std::int64_t start(std::size_t rank, std::size_t position) const {
    const std::uint32_t at = at_[rank][position];
    return end_[at] - duration_[at];
  }
  /// From next_, with what the ranks still have to compute in left_.
  std::optional<std::int64_t> go_on(const Order& order, std::int64_t most);

  const OrderModel& model_;
  std::vector<std::int64_t> duration_;          // [index]
  std::vector<std::int64_t> end_;               // [index] -1 = not yet
  std::vector<std::uint32_t> position_;         // [index] in its row
  std::vector<std::vector<std::uint32_t>> at_;  // [rank][position] index
  std::vector<std::size_t> next_;               // [rank] position
  std::vector<std::int64_t> rank_end_;          // [rank]
  std::vector<std::int64_t> work_, left_;       // [rank] all, and not yet done, tail included
  std::vector<std::uint32_t> count_;            // [part * stages + stage]
};

}  // namespace pfeife
