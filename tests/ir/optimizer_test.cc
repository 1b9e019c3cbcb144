#include "planner/ir/model/optimizer.h"

#include <gtest/gtest.h>

#include "planner/ir/model/optimizer_options.h"

namespace pfeife {
namespace {

using Sizes = std::vector<std::int64_t>;

// torch.optim of PyTorch 2.11: its state after a step on a 128 x 512 parameter, counted there.
TEST(OptimizerTable, StatesAreThoseThatTorchKeeps) {
  struct Counted {
    Optimizer optimizer;
    std::int64_t fp32, bf16;
  };
  for (const auto& [optimizer, fp32, bf16] : {Counted{Optimizer::Sgd, 0, 0},
                                              {Optimizer::Momentum, 262'144, 131'072},
                                              {Optimizer::Adam, 524'288, 262'144},
                                              {Optimizer::AdamW, 524'288, 262'144},
                                              {Optimizer::Adafactor, 2'560, 1'280},
                                              {Optimizer::Muon, 262'144, 131'072}}) {
    const Sizes sizes{128, 512};
    EXPECT_EQ(optimizer_work(optimizer, sizes, Bytes{4}).state, Bytes{fp32})
        << to_string(optimizer);
    EXPECT_EQ(optimizer_work(optimizer, sizes, Bytes{2}).state, Bytes{bf16})
        << to_string(optimizer);
  }
  EXPECT_EQ(optimizer_work(Optimizer::Adafactor, {512}, Bytes{4}).state, Bytes{2'048});
}

// Layout of bitsandbytes: two moments of a byte, two fp32 scales for each 256 elements; below 4096
// elements two fp32 moments. 2 x 16,777,216 + 2 x 65,536 x 4.
TEST(OptimizerTable, EightBitAdamHasAByteAMomentAndScalesOfBlocks) {
  EXPECT_EQ(optimizer_work(Optimizer::Adam8Bit, {4096, 4096}, Bytes{2}).state, Bytes{34'078'720});
  EXPECT_EQ(optimizer_work(Optimizer::Adam8Bit, {4095}, Bytes{2}).state, Bytes{4095 * 8});
}

// A fused pass reads parameter and gradient, reads and writes the state, and writes the parameter.
TEST(OptimizerTable, StepMovesWhatAFusedPassMoves) {
  const Sizes sizes{1024, 1024};
  const double count = 1024 * 1024;
  const auto moved = [&](const Optimizer& optimizer, std::int64_t element) {
    return static_cast<double>(optimizer_work(optimizer, sizes, Bytes{element}).moved.value) /
           count;
  };
  EXPECT_EQ(moved(Optimizer::Lion, 4), 20);
  EXPECT_EQ(moved(Optimizer::Muon, 4), 20);
  EXPECT_EQ(moved(Optimizer::MomentumBf16, 2), 10);
  EXPECT_EQ(moved(Optimizer::Adam8Bit, 2), 10.0625);
  EXPECT_EQ(moved({Optimizer::Own, 8, 0}, 4), 28);  // Adam in one pass
  EXPECT_EQ(moved({Optimizer::Own, 8, 15}, 4), 15);
}

// bf16 weights with fp32 masters: 12 with two moments, 8 with one; 8-bit Adam has no masters.
TEST(OptimizerTable, MastersAreStateOfParametersIn16Bits) {
  const auto bytes = [](const Optimizer& optimizer) {
    const Bytes state = optimizer_work(optimizer, {256, 256}, Bytes{2}, true, Masters::Fp32).state;
    return static_cast<double>(state.value) / (256 * 256);
  };
  EXPECT_EQ(bytes(Optimizer::Adam), 12);
  EXPECT_EQ(bytes(Optimizer::Lion), 8);
  EXPECT_EQ(bytes(Optimizer::Muon), 8);
  EXPECT_EQ(bytes(Optimizer::Sgd), 4);
  EXPECT_EQ(bytes(Optimizer::Adam8Bit), 2.03125);
  EXPECT_EQ(bytes({Optimizer::Own, 8, 0}), 8);  // as DeepSeek-V3: master, moments in bf16
}

// Newton and Schulz, m <= n, five steps: 5 (4 m^2 n + 2 m^3), as torch's FLOP counter counts.
TEST(OptimizerTable, MuonOrthogonalizesHiddenMatrices) {
  const auto flops = [](const Sizes& sizes, bool hidden = true) {
    double sum = 0;
    for (const OptimizerProduct& product :
         optimizer_work(Optimizer::Muon, sizes, Bytes{4}, hidden).products)
      sum += static_cast<double>(product.times) * product.flops.value;
    return sum;
  };
  const double m = 128, n = 512;
  EXPECT_EQ(flops({128, 512}), 5 * (4 * m * m * n + 2 * m * m * m));
  EXPECT_EQ(flops({512, 128}), flops({128, 512}));
  EXPECT_EQ(flops({8, 128, 512}), 8 * flops({128, 512}));  // an expert each
  EXPECT_EQ(flops({512}), 0);
  EXPECT_EQ(flops({128, 512}, false), 0);
  EXPECT_EQ(optimizer_work(Optimizer::Muon, {512}, Bytes{4}).state, Bytes{4096});  // by AdamW
}

TEST(OptimizerTable, NamesAreUnlikeAndOnesOwnSaysItsBytes) {
  const std::vector<Optimizer> all = known_optimizers();
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(to_string(all[a]), to_string(all[b]));
  EXPECT_EQ(to_string(Optimizer(Optimizer::Own, 1.5, 15)), "{state_bytes: 1.5, traffic_bytes: 15}");
}

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
