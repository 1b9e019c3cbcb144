// Orders that were built before: searches of one schedule come to the same cuts again and again.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "planner/schedules/order_model.h"
#include "planner/search/price/cut_model.h"

namespace pfeife {

/// What is known of one schedule of one problem. May be asked by several threads; what it answers
/// does not depend on what was asked before.
class OrderMemo {
 public:
  /// What an order is built for.
  struct Key {
    Cuts cuts;
    std::vector<bool> recompute;     ///< [stage]
    std::vector<std::int64_t> room;  ///< [rank] bytes
    std::size_t rules = 0, moves = 0;
    auto operator<=>(const Key&) const = default;
  };
  /// The order of `key`, which `build` makes unless it is known.
  Order order(const Key& key, const std::function<Order()>& build);

 private:
  static constexpr std::size_t kMostTurns = 2'000'000;  ///< remembered, 16 MB; then no more are

  std::mutex mutex_;
  std::map<Key, Order> known_;
  std::size_t turns_ = 0;  // of all of them
};

}  // namespace pfeife
