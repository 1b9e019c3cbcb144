#include "planner/search/orders/order_memo.h"

namespace pfeife {

Order OrderMemo::order(const Key& key, const std::function<Order()>& build) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  Order built = build();
  std::size_t turns = 0;
  for (const auto& row : built) turns += row.size();
  const std::lock_guard lock(mutex_);
  if (turns_ + turns <= kMostTurns && known_.emplace(key, built).second) turns_ += turns;
  return built;
}

}  // namespace pfeife
