#include "planner/ir/model/optimizer_options.h"

#include <gtest/gtest.h>

namespace pfeife {
namespace {

void expect_rates(const OptimizerOptions& options, const std::vector<double>& expected) {
  for (std::size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(learning_rate(options, static_cast<std::int64_t>(step)), expected[step], 1e-15)
        << to_string(options.schedule) << ", step " << step;
}

// The rates are those of PyTorch 2.11, printed with W = 4, T = 12 and an optimizer of lr=0.01:
//   warmup = LinearLR(optimizer, 1 / W, 1, W - 1)
//   SequentialLR(optimizer, [warmup, CosineAnnealingLR(optimizer, T - W, 0.001)], [W])
TEST(LearningRate, CosineAfterWarmUpIsThatOfTorchsSchedulers) {
  expect_rates(
      {.learning_rate = 0.01,
       .schedule = RateSchedule::Cosine,
       .min_rate = 0.001,
       .warmup_steps = 4,
       .decay_steps = 12},
      {0.0025, 0.005, 0.0075, 0.009999999999999998, 0.010000000000000002, 0.009657457896300792,
       0.008681980515339464, 0.007222075445642905, 0.0055000000000000005, 0.0037779245543570965,
       0.0023180194846605367, 0.0013425421036992098, 0.001, 0.001});
}

//   SequentialLR(optimizer, [warmup, LinearLR(optimizer, 1, 0.1, T - W)], [W])
TEST(LearningRate, LinearDecayAfterWarmUpIsThatOfTorchsSchedulers) {
  expect_rates({.learning_rate = 0.01,
                .schedule = RateSchedule::Linear,
                .min_rate = 0.001,
                .warmup_steps = 4,
                .decay_steps = 12},
               {0.0025, 0.005, 0.0075, 0.009999999999999998, 0.01, 0.008875, 0.007749999999999999,
                0.006624999999999999, 0.0055, 0.0043749999999999995, 0.00325, 0.0021249999999999997,
                0.0009999999999999998, 0.0009999999999999998});
}

//   CosineAnnealingLR(optimizer, 8)
TEST(LearningRate, CosineWithoutWarmUpBeginsWithTheLargestRate) {
  expect_rates(
      {.learning_rate = 0.01, .schedule = RateSchedule::Cosine, .decay_steps = 8},
      {0.01, 0.009619397662556433, 0.008535533905932736, 0.006913417161825449, 0.004999999999999999,
       0.003086582838174551, 0.0014644660940672624, 0.00038060233744356627, 0, 0});
}

//   LinearLR(optimizer, 1 / W, 1, W - 1)
TEST(LearningRate, ConstantStaysAfterWarmUp) {
  expect_rates({.learning_rate = 0.01, .warmup_steps = 4}, {0.0025, 0.005, 0.0075, 0.01, 0.01});
  expect_rates({.learning_rate = 0.25}, {0.25, 0.25});
}

}  // namespace
}  // namespace pfeife
