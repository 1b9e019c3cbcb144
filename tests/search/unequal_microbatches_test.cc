// Plans of microbatches that differ: against brute force over all cuts and all orders of small
// problems, and what the bound says of them.
#include "planner/search/steps/unequal_microbatches.h"

#include <gtest/gtest.h>

#include <numeric>

#include "planner/ir/judge/validate.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/orders/microbatch_permutation.h"
#include "planner/search/price/price.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

std::vector<MicrobatchScale> random_scales(std::mt19937& random, std::size_t count,
                                           bool attention) {
  std::vector<MicrobatchScale> scales;
  for (std::size_t m = 0; m < count; ++m) {
    const double linear = 0.25 * static_cast<double>(1 + random() % 12);
    scales.push_back({linear, attention ? 0.25 * static_cast<double>(1 + random() % 12) : linear});
  }
  return scales;
}

Sequence random_sequence(std::mt19937& random, std::size_t layers) {
  Sequence sequence{.tokens = 64};
  for (std::size_t l = 0; l < layers; ++l) {
    sequence.attention.push_back(static_cast<double>(random() % 100) / 100);
    sequence.keys_values.emplace_back(0);
  }
  return sequence;
}

/// The fastest of all cuts, in the order given or in any.
Nanoseconds fastest_of_all(const Problem& problem, const ScheduleSpec& spec, bool any_order) {
  MicrobatchOrder order(spec.microbatches);
  std::iota(order.begin(), order.end(), 0U);
  Nanoseconds best = Nanoseconds::max();
  do {
    const Schedule rows = relabelled(generate(spec), order);
    for_each_partition(problem.layers, spec.stages(), [&](const Partition& cuts) {
      const Prices prices =
          evaluate(problem.layers, problem.cluster, rows, placement_for(spec), cuts);
      if (fits(prices.peak_memory, problem.memory_limit)) best = std::min(best, prices.estimate);
    });
  } while (any_order && std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(UnequalMicrobatches, NoPlanIsBelowTheBoundNorBetterThanTheBestOfAll) {
  std::mt19937 random(21);
  int best_found = 0, plans = 0;
  double closest = 0;
  for (int round = 0; round < 30; ++round) {
    Layers layers = random_layers(random, {.layers = 6, .illegal_cuts = false});
    const std::size_t n = 3 + random() % 2, ranks = 2 + random() % 2;
    layers.sequence = random_sequence(random, layers.size());
    layers.microbatches = random_scales(random, n, round % 2 == 0);
    const Cluster cluster = random_cluster(random, ranks, round % 3 == 0);
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
    for (std::size_t r = 0; r < ranks; ++r) problem.device_of_rank.emplace_back(r);
    problem.memory_limit.assign(ranks, Bytes{std::int64_t{1} << 30});
    const std::vector<std::string> names{"1f1b", "gpipe"};
    problem.schedules = search_set(ranks, n, std::vector<std::size_t>{1}, names);
    problem.order_microbatches = round % 2 == 1;
    const Answer answer = search(problem, {.keep = 20, .iterations = 60, .certificate = true});
    ASSERT_FALSE(answer.plans.empty());
    ASSERT_TRUE(answer.bound.has_value());
    EXPECT_EQ(answer.certificate, nullptr);
    Nanoseconds fastest = Nanoseconds::max(), fastest_in_any = Nanoseconds::max();
    for (const ScheduleSpec& spec : problem.schedules) {
      fastest = std::min(fastest, fastest_of_all(problem, spec, problem.order_microbatches));
      fastest_in_any = std::min(fastest_in_any, fastest_of_all(problem, spec, true));
    }
    EXPECT_LE(answer.bound->time, fastest_in_any) << round;
    EXPECT_GE(answer.plans.front().estimate, fastest) << round;
    ++plans;
    best_found += answer.plans.front().estimate == fastest;
    closest = std::max(closest, static_cast<double>(answer.bound->time.count()) /
                                    static_cast<double>(fastest_in_any.count()));
    for (const Priced& plan : answer.plans) {
      const Prices exact =
          evaluate(layers, cluster, compute_only(plan), plan.placement, plan.partition);
      EXPECT_EQ(plan.estimate, exact.estimate);
      EXPECT_TRUE(validate(plan.rows->lowered, {stage_graph(plan.rows->costs), n}).empty());
    }
  }
  EXPECT_GE(best_found, plans * 3 / 4);
  EXPECT_GT(closest, 0.7);  // the bound is not empty
}

// Microbatches of equal factors are planned as those that are alike, in the same order.
TEST(UnequalMicrobatches, OfFactorsOfOneGetThePlanOfThoseThatAreAlike) {
  std::mt19937 random(2);
  Layers layers = random_layers(random, {.layers = 8, .illegal_cuts = false});
  const Cluster cluster = random_cluster(random, 2, false);
  Problem alike{.layers = layers, .cluster = cluster, .schedules = {}};
  alike.device_of_rank = {DeviceId{0}, DeviceId{1}};
  alike.memory_limit.assign(2, Bytes{std::int64_t{1} << 30});
  const std::vector<std::string> names{"1f1b", "interleaved_1f1b", "gpipe"};
  alike.schedules = search_set(2, 4, std::vector<std::size_t>{1, 2}, names);
  Layers ones = layers;
  ones.microbatches.assign(4, {1, 1});
  Problem listed = with_layers(alike, ones);
  listed.order_microbatches = true;
  const Answer a = search(alike, {.iterations = 100}), b = search(listed, {.iterations = 100});
  ASSERT_FALSE(b.plans.empty());
  EXPECT_EQ(a.plans.front().estimate, b.plans.front().estimate);
  EXPECT_FALSE(b.plans.front().order.has_value());
}

// With room for the microbatches in turn only if they recompute, or not at all: what is said fits.
TEST(UnequalMicrobatches, KeepToTheMemory) {
  std::mt19937 random(31);
  int planned = 0;
  for (int round = 0; round < 20; ++round) {
    Layers layers = random_layers(random, {.layers = 6, .illegal_cuts = false});
    layers.microbatches = random_scales(random, 4, false);
    const Cluster cluster = random_cluster(random, 2, false);
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
    problem.device_of_rank = {DeviceId{0}, DeviceId{1}};
    problem.memory_limit.assign(2, Bytes{3000 + static_cast<std::int64_t>(random() % 7000)});
    problem.schedules = search_set(2, 4, std::vector<std::size_t>{1},
                                   std::vector<std::string>{"1f1b", "gpipe", "zb_greedy"});
    problem.recompute = Recompute::IfNeeded;
    problem.order_microbatches = true;
    const Answer answer = search(problem, {.iterations = 40});
    EXPECT_EQ(answer.plans.empty(), answer.infeasible.has_value());
    EXPECT_FALSE(answer.infeasible && answer.infeasible->proven);
    for (const Priced& plan : answer.plans) {
      ++planned;
      EXPECT_TRUE(fits(plan.peak_memory, problem.memory_limit));
    }
  }
  EXPECT_GT(planned, 10);
}

// No order of the devices and no cut is faster than the bounds that know neither.
TEST(UnequalMicrobatches, WorkBoundsCountTheSumOfTheFactors) {
  std::mt19937 random(3);
  Layers layers =
      random_layers(random, {.layers = 6, .shared_parameters = false, .illegal_cuts = false});
  for (LayerParameter& parameter : layers.parameters) parameter.optimizer = {{}, {}};
  for (Layer& layer : layers.layers)
    for (LayerTimes& times : layer.times) times.optimizer = Nanoseconds{0};
  const Cluster cluster = random_cluster(random, 2, false);
  Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
  problem.device_of_rank = {DeviceId{0}, DeviceId{1}};
  problem.schedules =
      search_set(2, 3, std::vector<std::size_t>{1}, std::vector<std::string>{"1f1b"});
  Layers unequal = layers;
  unequal.microbatches = {{1, 1}, {2, 2}, {6, 6}};
  const double alike = shared_work_bound(problem, 3);
  const double sum = shared_work_bound(with_layers(problem, unequal), 3);
  EXPECT_NEAR(sum, 3 * alike, 30);  // rounding of 3 microbatches
}

}  // namespace
}  // namespace pfeife
