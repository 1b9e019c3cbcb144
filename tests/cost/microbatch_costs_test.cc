// Microbatches that differ: what each costs a stage, what a step of them takes and holds, by hand.
#include "planner/ir/schedule/microbatch_costs.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/cost/estimate/estimator.h"
#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/layers/microbatch_layers.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

using Scales = std::vector<MicrobatchScale>;

// Two documents of 3 and 5 tokens beside a sequence of 8: 8/8 of the tokens, (9 + 25)/64 of the
// scores. One of 8 is the sequence itself.
TEST(MicrobatchScales, OfDocumentsAreTokensAndSquares) {
  const Scales scales = scales_of_documents({{3, 5}, {8}, {4}}, 8, 1);
  EXPECT_EQ(scales, (Scales{{1, 34.0 / 64}, {1, 1}, {0.5, 0.25}}));
  // Two sequences of 8 a microbatch: twice the tokens, twice the scores.
  EXPECT_EQ(scales_of_documents({{8, 8}, {8, 4, 4}}, 8, 2), (Scales{{1, 1}, {1, 96.0 / 128}}));
}

TEST(MicrobatchScales, KindsAreNumberedByFirstAppearance) {
  EXPECT_EQ(kinds_of({{2, 2}, {1, 1}, {2, 2}, {1, 0.5}}), (std::vector<std::uint32_t>{0, 1, 0, 2}));
  EXPECT_EQ(without_equal_ones({{1, 1}, {1, 1}}), Scales{});
  EXPECT_EQ(without_equal_ones({{2, 2}, {2, 2}}).size(), 2U);
}

/// One stage that takes 100, 200 and 60 ns and saves 1000 bytes, half of it attention.
StageCosts one_stage() {
  StageCosts costs =
      uniform_costs(2, Nanoseconds{100}, Nanoseconds{200}, Nanoseconds{60}, Nanoseconds{10});
  for (StageCost& stage : costs.stages) {
    stage.optimizer = Nanoseconds{7}, stage.parameters = Bytes{500};
    stage.saved = Bytes{1000}, stage.weight_saved = Bytes{100};
    stage.temporary = {Bytes{10}, Bytes{20}, Bytes{30}, Bytes{40}};
  }
  costs.pairs[0].bytes = Bytes{64};
  return costs;
}

TEST(MicrobatchCosts, TimesTakeBothFactorsByTheShareOfAttentionAndBytesTheLinearOne) {
  const Scales scales{{1, 1}, {2, 4}};
  const std::vector<double> linear{0.5};
  const StageCosts costs = with_microbatches(one_stage(), scales, linear);
  ASSERT_EQ(costs.kinds.size(), 2U);
  EXPECT_EQ(costs.kinds[0].stages, costs.stages);
  const StageCost& longer = costs.kinds[1].stages[0];
  EXPECT_EQ(longer.forward, Nanoseconds{300});  // half twice, half four times
  EXPECT_EQ(longer.backward_input, Nanoseconds{600});
  EXPECT_EQ(longer.backward_weight, Nanoseconds{180});
  EXPECT_EQ(longer.optimizer, Nanoseconds{7});
  EXPECT_EQ(longer.parameters, Bytes{500});
  EXPECT_EQ(longer.saved, Bytes{2000});
  EXPECT_EQ(longer.weight_saved, Bytes{200});
  EXPECT_EQ(longer.temporary.largest(), Bytes{80});
  EXPECT_EQ(find_pair(costs, StageId{0}, StageId{1}, MicrobatchId{1})->bytes, Bytes{128});
  EXPECT_EQ(find_pair(costs, StageId{0}, StageId{1}, MicrobatchId{0})->bytes, Bytes{64});
}

// Two ranks, 1F1B, microbatches of 1 and 3 times, F 100, B 260, messages of 10 each way:
// rank 0 F0 0-100, F1 100-400; rank 1 F0 110-210, B0 210-470, F1 470-770, B1 770-1550;
// rank 0 B0 480-740, B1 1560-2340, and 7 of the optimizer.
TEST(MicrobatchCosts, AStepByHand) {
  const Scales scales{{1, 1}, {3, 3}};
  const std::vector<double> linear{1};
  const StageCosts costs = with_microbatches(one_stage(), scales, linear);
  const ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 2};
  const Placement placement = placement_for(spec);
  const Prices priced = evaluate_lowered(costs, lower(generate(spec), costs, placement), placement);
  EXPECT_EQ(priced.estimate, Nanoseconds{2347});
  // Rank 1 holds 3000 of microbatch 1 or 1000 of microbatch 0, not both; rank 0 has both.
  const std::vector<Bytes> peaks = priced.peak_memory;
  const MemoryCurve first = memory(priced.lowered, RankId{0}, costs, placement);
  EXPECT_GE(peaks[0], Bytes{500 + 1000 + 3000});
  EXPECT_LT(peaks[1], Bytes{500 + 1000 + 3000});
  EXPECT_GE(peaks[1], Bytes{500 + 3000});
  EXPECT_EQ(first.steps.back().after, Bytes{500});  // all that was held is let go
}

// All factors 1, written out as kinds: every estimate and every byte is that of microbatches that
// are alike. All factors 2 give twice the compute.
TEST(MicrobatchCosts, OfFactorsOfOneAreThoseOfMicrobatchesThatAreAlike) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    Layers layers = random_layers(random, {.layers = 8, .illegal_cuts = false});
    const Cluster cluster = random_cluster(random, 3, true);
    const std::size_t n = 1 + random() % 5;
    const ScheduleSpec spec = random_spec(random, 3, n, {1, 2});
    if (spec.stages() > 7) continue;
    const Placement placement = placement_for(spec);
    Partition cuts;
    for (std::size_t s = 1; s < spec.stages(); ++s)
      cuts.cuts.push_back(static_cast<std::int32_t>(s - 1));
    Activations activations;
    if (round % 2) activations.stages.assign(spec.stages(), true);
    const Prices alike = evaluate(layers, cluster, generate(spec), placement, cuts,
                                  MemoryRule::Lifetimes, activations);
    layers.microbatches.assign(n, {1, 1});
    const Prices ones = evaluate(layers, cluster, generate(spec), placement, cuts,
                                 MemoryRule::Lifetimes, activations);
    EXPECT_EQ(ones.costs.kinds.size(), 1U);
    EXPECT_EQ(ones.costs.kinds[0].stages, alike.costs.stages);
    EXPECT_EQ(ones.costs.kinds[0].pairs, alike.costs.pairs);
    EXPECT_EQ(ones.estimate, alike.estimate);
    EXPECT_EQ(ones.peak_memory, alike.peak_memory);
    EXPECT_EQ(ones.lowered, alike.lowered);
    // More work never takes less.
    layers.microbatches[random() % n] = {1.5, 1.5};
    const Prices more = evaluate(layers, cluster, generate(spec), placement, cuts,
                                 MemoryRule::Lifetimes, activations);
    EXPECT_GE(more.estimate, alike.estimate);
    for (std::size_t r = 0; r < 3; ++r) EXPECT_GE(more.peak_memory[r], alike.peak_memory[r]);
  }
}

// DeviceKind::stage_overhead is of an action, whatever its microbatch: it is not scaled.
TEST(MicrobatchCosts, TheOverheadOfAnActionIsNotScaled) {
  Layers layers;
  layers.name = "two";
  for (const char* name : {"a", "b"})
    layers.layers.push_back({.name = name,
                             .times = {{.forward = Nanoseconds{1000},
                                        .backward_input = Nanoseconds{1000},
                                        .backward_weight = Nanoseconds{1000}}}});
  layers.values.push_back(
      {.producer = LayerId{0}, .consumers = {LayerId{1}}, .bytes = Bytes{1000}});
  layers.values[0].gradient_bytes = Bytes{1000};
  layers.microbatches = {{1, 1}, {4, 4}};
  DeviceKind kind;
  kind.stage_overhead = Nanoseconds{50};
  const Cluster cluster = uniform_cluster(2, kind, {1e9}, Nanoseconds{300});
  const ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 2};
  const StageCosts costs = stage_costs(layers, Partition{{0}}, placement_for(spec), cluster);
  EXPECT_EQ(costs.kinds[0].stages[0].forward, Nanoseconds{1050});
  EXPECT_EQ(costs.kinds[1].stages[0].forward, Nanoseconds{4050});
  EXPECT_EQ(costs.kinds[1].stages[1].backward_input, Nanoseconds{4050});
  EXPECT_EQ(costs.kinds[1].stages[1].backward_weight, Nanoseconds{4000});
  // 1 GB/s: a byte a ns; the latency is paid once.
  EXPECT_EQ(costs.kinds[0].pairs[0].forward_time, Nanoseconds{1300});
  EXPECT_EQ(costs.kinds[1].pairs[0].forward_time, Nanoseconds{4300});
}

// The mean microbatch does as much work as all together, the least one never more than any.
TEST(MicrobatchLayers, MeanAndLeastOnes) {
  std::mt19937 random(9);
  Layers layers = random_layers(random, {.layers = 6});
  layers.microbatches = {{1, 1}, {3, 3}, {0.5, 0.5}};
  const Layers mean = mean_microbatch(layers), least = least_microbatch(layers);
  EXPECT_TRUE(mean.microbatches.empty() && least.microbatches.empty());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto forward = [&](const Layers& model) {
      return static_cast<double>(model.layers[l].times[0].forward.count());
    };
    EXPECT_NEAR(forward(mean), 1.5 * forward(layers), 1);
    EXPECT_NEAR(forward(least), 0.5 * forward(layers), 1);
    EXPECT_LE(forward(least), 0.5 * forward(layers));
    EXPECT_DOUBLE_EQ(least_work(layers, l, true), 4.5);
  }
}

}  // namespace
}  // namespace pfeife
