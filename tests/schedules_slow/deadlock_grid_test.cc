#include "tests/schedules/deadlock_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pfeife {
namespace {

TEST(ReadyOrder, NeverDeadlocksUpToEightRanksThirtyTwoMicrobatchesAndFourLoops) {
  std::size_t points = 0;
  EXPECT_THAT(deadlocks_of_grid(8, 32, 4, points), ::testing::ElementsAre());
  EXPECT_GT(points, 10000u);
}

}  // namespace
}  // namespace pfeife
