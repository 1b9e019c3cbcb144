// What failures leave of a run: figures by hand, and a run of seeded random failures, event by
// event.
#include "experiments/sweep/goodput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace pfeife {
namespace {

// 419 stops in 54 days of 16,384 devices: one in 54 x 24 / 419 = 3.093 h, of one device one in
// 50,677 h.
TEST(Goodput, TimesBetweenStopsAreThoseOfLlama3) {
  EXPECT_NEAR(StopRate{}.seconds_between(16'384) / 3600, 3.0931, 1e-4);
  EXPECT_NEAR(StopRate{}.seconds_between(1) / 3600, 50'677, 1);
}

// sqrt(2 x 30 s x 6,000 s) = 600 s: 30 of 600 s saving, 300 of 6,000 s done again, 120 of 6,000
// restarting: 5, 5 and 2 %.
TEST(Goodput, SharesAreThoseByHand) {
  const TimeShares shares = time_shares(6000, {.save = 30, .restart = 120});
  EXPECT_DOUBLE_EQ(shares.interval, 600);
  EXPECT_DOUBLE_EQ(shares.saving, 0.05);
  EXPECT_DOUBLE_EQ(shares.redone, 0.05);
  EXPECT_DOUBLE_EQ(shares.restarting, 0.02);
  EXPECT_DOUBLE_EQ(shares.useful, 0.88);
  EXPECT_EQ(time_shares(6000, {.save = 0, .restart = 7000}).useful, 0);
}

/// Samples per second of a long run, event by event: `full` samples per second of steps, a save
/// after each `interval` of steps, a failure after a random time, which throws away what is not
/// saved and takes `restart`; then `repair` with `meanwhile` samples per second, less the share
/// that saves and failures take.
double played_failures(double full, double meanwhile, double between, double interval,
                       const Recovery& recovery, std::mt19937_64& random) {
  std::exponential_distribution<double> failure(1 / between);
  double time = 0, samples = 0;
  for (int stop = 0; stop < 200'000; ++stop) {
    double left = failure(random);
    time += left;
    left -= recovery.restart;
    const double segments = std::floor(std::max(0.0, left) / (interval + recovery.save));
    samples += full * segments * interval;
    time += recovery.repair;
    samples += meanwhile * std::max(0.0, recovery.repair - recovery.restart);
  }
  return samples / time;
}

TEST(Goodput, IsThatOfRandomFailuresAndNoOtherIntervalIsBetter) {
  std::mt19937_64 random(3);
  const Recovery recovery{.save = 20, .restart = 100, .repair = 3000};
  const double between = 20'000, interval = time_shares(between, recovery).interval;
  EXPECT_NEAR(goodput(8, 0, between, recovery),
              played_failures(8, 0, between, interval, recovery, random), 0.01 * 8);
  const double useful = time_shares(between, recovery).useful;
  EXPECT_NEAR(goodput(8, 6, between, recovery),
              played_failures(8, 6 * useful, between, interval, recovery, random), 0.01 * 8);
  for (const double factor : {0.5, 2.0})
    EXPECT_LT(played_failures(8, 0, between, factor * interval, recovery, random),
              played_failures(8, 0, between, interval, recovery, random));
}

}  // namespace
}  // namespace pfeife
