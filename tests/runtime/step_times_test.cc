// Typical times, what varies by itself and what varies together, against samples whose figures are
// known.
#include "runtime/profile/step_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace pfeife {
namespace {

/// Steps of eight passes, alternately of a short and a long kind.
struct Made {
  double cv = 0, drift = 0;
  int steps = 0;
  double accidents = 0;  ///< share of the steps one pass of which takes ten times as long
};
MeasuredVariation found_in(const Made& made) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  StepTimes variation;
  for (int s = 0; s < made.steps; ++s) {
    variation.begin_step();
    const double common = 1 + made.drift * normal(random);
    const bool accident = uniform(random) < made.accidents;
    for (std::size_t pass = 0; pass < 8; ++pass) {
      const double mean = pass % 2 == 0 ? 20e6 : 50e6;  // ns
      double time = mean * common * (1 + made.cv * normal(random));
      if (accident && pass == 3) time *= 10;
      variation.add(pass % 2, Nanoseconds{std::llround(time)});
    }
  }
  return variation.found();
}

// n steps: a standard deviation from percentiles is off by about 1 / sqrt(n) of itself. The bounds
// are five times that, and of the noise of a step's mean where that is the larger part.
TEST(StepTimes, FindsWhatTheSamplesWereMadeWith) {
  constexpr int kSteps = 4000;
  for (const auto& [cv, drift] : {std::pair{0.03, 0.02}, {0.01, 0.05}, {0.05, 0.05}}) {
    const MeasuredVariation found = found_in({.cv = cv, .drift = drift, .steps = kSteps});
    EXPECT_NEAR(found.cv, cv, 0.08 * cv);
    EXPECT_NEAR(found.drift, drift, 0.08 * (drift + cv / 2));
  }
}

// The mean of eight passes that vary by 3 % varies by 1.2 % (they are not equally long), none of
// which is common to them.
TEST(StepTimes, PassesThatVaryByThemselvesMakeNoDrift) {
  const MeasuredVariation found = found_in({.cv = 0.03, .drift = 0, .steps = 4000});
  EXPECT_NEAR(found.cv, 0.03, 0.002);
  EXPECT_LT(found.drift, 0.004);
}

TEST(StepTimes, StepsThatAreSlowAsAWholeAreDriftAlone) {
  const MeasuredVariation found = found_in({.cv = 0, .drift = 0.04, .steps = 4000});
  EXPECT_LT(found.cv, 1e-6);
  EXPECT_NEAR(found.drift, 0.04, 0.003);
}

// Six rounds of three steps on a machine whose speed changes between rounds by 3 %, within them by
// 1 %; then one more step in a round of its own. Nine of ten such steps are to lie within a normal
// variate's 5th and 95th percentile about the mean of what was measured; three times what the share
// over 4,000 tries is known to is allowed. Of steps that vary as if all were of one round, 76 % lie
// there.
TEST(StepTimes, AFewRoundsSayHowFarTheNextOneMayBe) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  constexpr int kTries = 4000;
  for (const auto& [between, within] : {std::pair{0.03, 0.01}, {0.02, 0.02}, {0.0, 0.02}}) {
    int inside = 0;
    for (int t = 0; t < kTries; ++t) {
      StepTimes times;
      const auto next_time = [&](double round) {
        return 1e8 * (1 + between * round + within * normal(random));
      };
      double sum = 0;
      for (int r = 0; r < 6; ++r) {
        times.begin_round();
        const double round = normal(random);
        for (int s = 0; s < 3; ++s) {
          const double time = next_time(round);
          sum += time;
          times.begin_step();
          for (int pass = 0; pass < 4; ++pass) times.add(0, Nanoseconds{std::llround(time / 4)});
        }
      }
      const double predicted = sum / 18;
      const MeasuredVariation found = times.found();
      inside += std::abs(next_time(normal(random)) / predicted - 1) < 1.6449 * found.drift ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(inside) / kTries, 0.9, 0.015) << between << " " << within;
  }
}

TEST(StepTimes, RareAccidentsDoNotMakeAllStepsUncertain) {
  const MeasuredVariation found =
      found_in({.cv = 0.02, .drift = 0.02, .steps = 4000, .accidents = 0.02});
  EXPECT_LT(found.cv, 0.03);
  EXPECT_LT(found.drift, 0.03);
}

// By hand: the means of the three steps are 20, 40 and 90; a delay of one pass counts as far as it
// delays a step. Kinds are told apart, and a step may have none.
TEST(StepTimes, TypicalIsTheMedianOfTheMeans) {
  StepTimes times;
  for (const auto& [a, b] : {std::pair{10, 30}, {10, 70}, {20, 160}}) {
    times.begin_step();
    times.add(0, Nanoseconds{a});
    times.add(1, Nanoseconds{7});
    times.add(0, Nanoseconds{b});
  }
  times.begin_step();
  EXPECT_EQ(times.typical(0), Nanoseconds{40});
  EXPECT_EQ(times.typical(1), Nanoseconds{7});
  EXPECT_EQ(times.typical(2), Nanoseconds{0});
}

TEST(StepTimes, EqualTimesDoNotVary) {
  StepTimes variation;
  for (int s = 0; s < 3; ++s) {
    variation.begin_step();
    for (std::size_t kind = 0; kind < 3; ++kind)
      variation.add(kind, Nanoseconds{1000 * static_cast<std::int64_t>(kind + 1)});
  }
  EXPECT_EQ(variation.found(), MeasuredVariation{});
}

}  // namespace
}  // namespace pfeife
