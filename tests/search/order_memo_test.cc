// What was built before is not built again, and nothing else is taken for it.
#include "planner/search/orders/order_memo.h"

#include <gtest/gtest.h>

namespace pfeife {
namespace {

TEST(OrderMemo, BuildsOnceForEachKeyAndTellsKeysApartByEveryPart) {
  OrderMemo memo;
  std::size_t built = 0;
  const auto ask = [&](const OrderMemo::Key& key) {
    return memo.order(key, [&] { return Order(1, std::vector<Turn>(++built)); })[0].size();
  };
  const OrderMemo::Key first{{0, 3, 9}, {false, true}, {100, 200}, 16, 4};
  std::vector<OrderMemo::Key> keys(6, first);
  keys[1].cuts[1] = 4;
  keys[2].recompute[0] = true;
  keys[3].room[1] = 199;
  keys[4].rules = 17;
  keys[5].moves = 8;
  for (int time = 0; time < 2; ++time)
    for (std::size_t k = 0; k < keys.size(); ++k) EXPECT_EQ(ask(keys[k]), k + 1);
  EXPECT_EQ(built, keys.size());
}

}  // namespace
}  // namespace pfeife
