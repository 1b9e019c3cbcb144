#include "planner/ir/trace/median_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace pfeife {
namespace {

// Tables of the binomial distribution, p = 1/2 (for example NIST Handbook 148, or Abramowitz and
// Stegun 26.1.20): P(X <= k).
TEST(BinomialHalf, IsThatOfTheTables) {
  EXPECT_NEAR(binomial_half(10, 1), 0.0107, 5e-5);
  EXPECT_NEAR(binomial_half(10, 5), 0.6230, 5e-5);
  EXPECT_NEAR(binomial_half(20, 5), 0.0207, 5e-5);
  EXPECT_NEAR(binomial_half(20, 9), 0.4119, 5e-5);
  EXPECT_DOUBLE_EQ(binomial_half(6, 6), 1);
}

// The ranks of the two-sided sign test at 5 % (critical values: 0 for n = 6 to 8, 1 for 9 to 11,
// 2 for 12 to 14, 5 for 20, 7 for 25; Conover, Practical Nonparametric Statistics): one more is the
// order statistic.
TEST(MedianInterval, LiesBetweenTheOrderStatisticsOfTheSignTest) {
  for (const auto& [n, critical] : std::vector<std::pair<int, int>>{
           {6, 0}, {7, 0}, {8, 0}, {9, 1}, {11, 1}, {12, 2}, {14, 2}, {20, 5}, {25, 7}}) {
    std::vector<double> values;
    for (int i = n; i >= 1; --i) values.push_back(i);
    const auto interval = median_interval(values);
    ASSERT_TRUE(interval) << n;
    EXPECT_EQ(interval->low, critical + 1) << n;
    EXPECT_EQ(interval->high, n - critical) << n;
    EXPECT_DOUBLE_EQ(interval->median, (n + 1) / 2.0);
    EXPECT_GE(interval->coverage, 0.95);
  }
  EXPECT_FALSE(median_interval({1, 2, 3, 4, 5}));
  EXPECT_FALSE(median_interval(std::vector<double>{}));
}

/// Among 2000 experiments of ten draws from a skewed distribution, 97.9 % contain its median: 40
/// more or less would be six standard deviations.
TEST(MedianInterval, ContainsTheMedianAsOftenAsItSays) {
  std::mt19937_64 random(11);
  int contained = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> values;
    for (int i = 0; i < 10; ++i)
      values.push_back(-std::log((static_cast<double>(random() >> 11) + 0.5) / 9007199254740992.0));
    const auto interval = median_interval(values);
    contained += interval->low <= std::log(2.0) && std::log(2.0) <= interval->high;
  }
  EXPECT_NEAR(contained / 2000.0, 1 - 2 * 11.0 / 1024, 0.02);
}

// A machine that is twice as slow in every other round hides a difference of 5 % between medians,
// not between pairs.
TEST(PairedDifference, DoesNotSeeWhatSlowsWholeRounds) {
  std::vector<Nanoseconds> faster, slower;
  for (int round = 0; round < 8; ++round) {
    const int speed = round % 2 == 0 ? 1 : 2;
    faster.push_back(Nanoseconds{100'000 * speed});
    slower.push_back(Nanoseconds{(105'000 + 100 * (round - 4)) * speed});
  }
  const auto difference = paired_difference(faster, slower);
  ASSERT_TRUE(difference);
  EXPECT_NEAR(difference->median, 0.05, 0.001);
  EXPECT_GT(difference->low, 0.045);
  EXPECT_LT(difference->high, 0.055);
}

}  // namespace
}  // namespace pfeife
