// The first of several ranks, against a search through all of them.
#include "planner/schedules/soonest.h"

#include <gtest/gtest.h>

#include <random>

namespace pfeife {
namespace {

TEST(Soonest, IsTheFirstOfTheSmallestAfterEveryChange) {
  std::mt19937 random(1);
  for (std::size_t ranks = 1; ranks <= 40; ++ranks) {
    Soonest soonest(ranks);
    std::vector<std::int64_t> time(ranks, 0);
    EXPECT_EQ(soonest.rank(), 0U);
    for (int change = 0; change < 300; ++change) {
      const std::size_t rank = random() % ranks;
      // Few values, so that many are equal; the largest is what a rank has that never comes.
      time[rank] = random() % 8 == 0 ? std::numeric_limits<std::int64_t>::max()
                                     : static_cast<std::int64_t>(random() % 6);
      soonest.set(rank, time[rank]);
      ASSERT_EQ(soonest[rank], time[rank]);
      ASSERT_EQ(soonest.rank(),
                static_cast<std::size_t>(std::ranges::min_element(time) - time.begin()))
          << ranks << " ranks, change " << change;
    }
  }
}

}  // namespace
}  // namespace pfeife
