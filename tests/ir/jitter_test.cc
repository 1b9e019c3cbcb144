#include "planner/ir/schedule/jitter.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pfeife {
namespace {

/// An optimizer's step varies by the common factor alone.
double common_factor(const JitterSource& source) {
  constexpr std::int64_t kLong = 1'000'000'000'000'000;
  return static_cast<double>(source.vary(Nanoseconds{kLong}, 0, TaskKind::Optimizer).count()) /
         kLong;
}

struct Moments {
  double mean = 0, cv = 0;
};
Moments moments(const Jitter& jitter, int count) {
  const JitterSource source(jitter, 3);
  double sum = 0, squares = 0;
  for (int t = 0; t < count; ++t) {
    const double factor = source.factor(static_cast<std::uint64_t>(t));
    EXPECT_GT(factor, 0);
    sum += factor;
    squares += factor * factor;
  }
  const double mean = sum / count;
  return {mean, std::sqrt(squares / count - mean * mean) / mean};
}

// With n draws the mean is off by cv / sqrt(n) (one standard deviation), the cv by about cv /
// sqrt(2 n); the bounds are five times that, and one per cent of the cv for the twelve uniform
// variates that stand for a normal one.
TEST(Jitter, KeepsTheMeanAndHasTheCoefficientOfVariationAskedFor) {
  constexpr int kDraws = 200'000;
  for (const double cv : {0.001, 0.02, 0.1, 0.5}) {
    const Moments found = moments({.cv = cv, .seed = 42}, kDraws);
    EXPECT_NEAR(found.mean, 1, 5 * cv / std::sqrt(kDraws)) << cv;
    EXPECT_NEAR(found.cv, cv, 5 * cv / std::sqrt(2.0 * kDraws) + 0.015 * cv) << cv;
  }
}

TEST(Jitter, IsLogNormalInTheTails) {
  // 2.28 % of a normal variate lie above two standard deviations; those above in the factor are as
  // many.
  const double cv = 0.3, sigma = std::sqrt(std::log(1 + cv * cv));
  const JitterSource source({.cv = cv, .seed = 5}, 0);
  int above = 0, below = 0;
  for (std::uint64_t t = 0; t < 100'000; ++t) {
    above += source.factor(t) > std::exp(2 * sigma - sigma * sigma / 2);
    below += source.factor(t) < std::exp(-2 * sigma - sigma * sigma / 2);
  }
  EXPECT_NEAR(above, 2275, 250);
  EXPECT_NEAR(below, 2275, 250);
}

TEST(Jitter, SameSeedSameNumbersOtherSeedsOthers) {
  const JitterSource a({.cv = 0.1, .seed = 1}, 0), again({.cv = 0.1, .seed = 1}, 0),
      other_seed({.cv = 0.1, .seed = 2}, 0), other_repetition({.cv = 0.1, .seed = 1}, 1);
  for (std::uint64_t t = 0; t < 100; ++t) {
    EXPECT_EQ(a.factor(t), again.factor(t));
    EXPECT_NE(a.factor(t), other_seed.factor(t));
    EXPECT_NE(a.factor(t), other_repetition.factor(t));
    EXPECT_NE(a.factor(t), a.factor(t + 1));
  }
}

TEST(Jitter, NumbersAreTheSameOnEveryMachine) {
  const JitterSource source({.cv = 0.05, .seed = 2024}, 7);
  EXPECT_EQ(source.vary(Nanoseconds{1'000'000'000'000}, 0, TaskKind::Compute),
            Nanoseconds{1'002'570'898'053});
  EXPECT_EQ(source.vary(Nanoseconds{1'000'000'000'000}, 123456, TaskKind::Transfer),
            Nanoseconds{978'536'246'618});
}

TEST(Jitter, NoneLeavesTimesAsTheyAre) {
  const JitterSource source({}, 0);
  EXPECT_EQ(source.vary(Nanoseconds{12345}, 9, TaskKind::Compute), Nanoseconds{12345});
}

TEST(Jitter, WithoutDriftHasNoCommonFactor) {
  EXPECT_EQ(common_factor(JitterSource({.cv = 0.3, .seed = 8}, 5)), 1);
}

// As above: over n repetitions the mean is off by drift / sqrt(n), the coefficient of variation by
// drift / sqrt(2 n), times five.
TEST(Jitter, CommonFactorsVaryFromRepetitionToRepetitionAsAskedFor) {
  constexpr int kRuns = 20'000;
  for (const double drift : {0.01, 0.2}) {
    double sum = 0, squares = 0;
    for (int run = 0; run < kRuns; ++run) {
      const double factor = common_factor(
          JitterSource({.cv = 0.1, .seed = 3, .drift = drift}, static_cast<std::uint64_t>(run)));
      sum += factor;
      squares += factor * factor;
    }
    const double mean = sum / kRuns;
    EXPECT_NEAR(mean, 1, 5 * drift / std::sqrt(kRuns)) << drift;
    EXPECT_NEAR(std::sqrt(squares / kRuns - mean * mean) / mean, drift,
                5 * drift / std::sqrt(2.0 * kRuns) + 0.015 * drift)
        << drift;
  }
}

TEST(Jitter, CommonFactorIsOfComputationsAndOptimizerStepsAndTheOwnOneOfComputationsAndTransfers) {
  const Nanoseconds time{1'000'000'000};
  const JitterSource both({.cv = 0.1, .seed = 6, .drift = 0.2}, 4);
  const auto times = [&](double factor) {
    return Nanoseconds{std::llround(static_cast<double>(time.count()) * factor)};
  };
  const double own = both.factor(7), common = common_factor(both);
  EXPECT_EQ(own, JitterSource({.cv = 0.1, .seed = 6}, 4).factor(7)) << "drift does not change it";
  EXPECT_NE(common, 1);
  EXPECT_EQ(both.vary(time, 7, TaskKind::Compute), times(own * common));
  EXPECT_EQ(both.vary(time, 7, TaskKind::Transfer), times(own));
  EXPECT_EQ(both.vary(time, 7, TaskKind::Optimizer), times(common));
}

}  // namespace
}  // namespace pfeife
