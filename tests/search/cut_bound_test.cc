// Bounds of all cuts against worked examples and brute force: the smallest weighted sum, and what
// takes no search.
#include "planner/search/bound/cut_bound.h"

#include <gtest/gtest.h>

#include "planner/search/bound/segment_bound.h"
#include "planner/search/price/candidate.h"
#include "tests/search/random_instance.h"

namespace pfeife {
namespace {

/// Random whole weights of everything that a stage may have, transfers left out.
PathCounts<double> random_weights(std::mt19937& random, std::size_t stages) {
  PathCounts<double> weights(stages);
  weights.temporary.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    for (auto& of : weights.work) of[s] = static_cast<double>(random() % 4);
    for (auto& of : weights.held) of[s] = static_cast<double>(random() % 3);
    for (double& of : weights.temporary[s]) of = random() % 3 == 0 ? 5 : 0;
  }
  return weights;
}

/// The weighted sum of one choice of cuts, stage by stage.
double weighted_sum(const Candidates& candidates, const PathCounts<double>& weights,
                    const Cuts& cuts) {
  const CutModel& model = candidates.model();
  double sum = 0;
  for (std::size_t s = 0; s < candidates.stages(); ++s) {
    const auto from = static_cast<std::size_t>(cuts[s]), to = static_cast<std::size_t>(cuts[s + 1]);
    for (std::size_t w = 0; w < kWorks; ++w) {
      const auto& time = model.time(candidates.costs().kind(s), static_cast<Work>(w));
      sum += weights.work[w][s] * (time[to] - time[from]);
    }
    for (std::size_t h = 0; h < kHolds; ++h) {
      const auto& held = model.held(static_cast<Hold>(h));
      sum += weights.held[h][s] * (held[to] - held[from]);
    }
    for (std::size_t pass = 0; pass < kPasses; ++pass)
      sum +=
          weights.temporary[s][pass] * model.temporary(static_cast<Op>(pass), cuts[s], cuts[s + 1]);
  }
  return sum;
}

TEST(CutBound, FindsTheSmallestSumAndFiltersNothingBelowALimit) {
  std::mt19937 random(61);
  int filtered = 0;
  for (int round = 0; round < 600; ++round) {
    Instance instance = random_instance(random, 1, 0.5);
    for (Bytes& limit : instance.memory_limit) limit = Bytes{1 << 30};
    const Problem problem = instance.problem();
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    if (model.last() < static_cast<std::int32_t>(instance.schedules[0].stages())) continue;
    const Candidates candidates(model, problem, instance.schedules[0]);
    const std::size_t stages = candidates.stages();
    CutBound bound(model, candidates.costs(), candidates.live(), problem.memory_limit, stages);
    ASSERT_TRUE(bound.enter(bound.everything()));
    bound.refresh_latencies();
    const PathCounts<double> weights = random_weights(random, stages);
    std::vector<std::pair<double, Cuts>> all;
    for_each_partition(instance.layers, stages, [&](const Partition& partition) {
      const Cuts cuts = *model.cuts(partition);
      all.emplace_back(1000 + weighted_sum(candidates, weights, cuts), cuts);
    });
    std::ranges::sort(all);
    const auto minimum = bound.minimum(weights, 1000);
    ASSERT_TRUE(minimum);
    ASSERT_EQ(minimum->scaled, all.front().first) << round;
    ASSERT_EQ(1000 + weighted_sum(candidates, weights, minimum->cuts), minimum->scaled);
    const double limit = all[random() % all.size()].first;
    ASSERT_TRUE(bound.filter(limit));
    for (const auto& [sum, cuts] : all) {
      bool inside = true;
      for (std::size_t i = 1; i < stages; ++i)
        inside = inside && std::ranges::count(bound.positions(i), cuts[i]) > 0;
      ASSERT_TRUE(inside || sum > limit) << round;
      filtered += !inside;
    }
  }
  EXPECT_GT(filtered, 1000);
}

// Cuts that hold exactly as much as there is are within the limits, in the whole region as in the
// one of them alone.
TEST(CutBound, KeepsCutsThatHoldJustTheLimit) {
  std::mt19937 random(83);
  int tried = 0;
  for (int round = 0; round < 400; ++round) {
    const Instance instance = random_instance(random, 1, 0.5);
    const Problem problem = instance.problem();
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    if (model.last() < static_cast<std::int32_t>(instance.schedules[0].stages())) continue;
    const Candidates candidates(model, problem, instance.schedules[0]);
    std::vector<Cuts> all;
    for_each_partition(instance.layers, candidates.stages(),
                       [&](const Partition& partition) { all.push_back(*model.cuts(partition)); });
    const Cuts& cuts = all[random() % all.size()];
    std::vector<Bytes> limit;
    for (std::size_t r = 0; r < candidates.live().ranks(); ++r)
      limit.push_back(Bytes{static_cast<std::int64_t>(candidates.live().peak(model, cuts, r))});
    CutBound bound(model, candidates.costs(), candidates.live(), limit, candidates.stages());
    CutRegion region = bound.everything();
    for (const bool alone : {false, true}) {
      if (alone) region.first = region.last = cuts;
      ASSERT_TRUE(bound.enter(region)) << round;
      for (std::size_t i = 1; i < candidates.stages(); ++i)
        ASSERT_EQ(std::ranges::count(bound.positions(i), cuts[i]), 1) << round;
      const auto minimum = bound.minimum(PathCounts<double>(candidates.stages()), 0);
      ASSERT_TRUE(minimum) << round;
      if (alone) {
        ASSERT_EQ(minimum->cuts, cuts) << round;
      }
      ++tried;
    }
  }
  EXPECT_GT(tried, 200);
}

/// One rank and stage, two microbatches; of the schedule only the order counts.
Schedule in_order(const std::vector<std::pair<Op, std::int64_t>>& actions) {
  Schedule schedule;
  schedule.rows.emplace_back();
  for (const auto& [op, microbatch] : actions)
    schedule.rows[0].push_back(
        Action{.op = op, .stage = StageId{0}, .microbatch = MicrobatchId{microbatch}});
  return schedule;
}

// Layers a, b, c, d, each reads the one before; F, I, W: a 3 50 0, b 4 50 0, c 10 20 30, d 1 2 0.
// c decides: 3 + 4 until a microbatch is there, twice 10 + 20, as many W as the order has before
// its last I, then 50 + 50 back.
TEST(SegmentBound, AddsWhatComesBeforeAndAfterTheHeaviestPiece) {
  Layers layers;
  const std::int64_t times[4][3] = {{3, 50, 0}, {4, 50, 0}, {10, 20, 30}, {1, 2, 0}};
  for (std::int64_t l = 0; l < 4; ++l) {
    const auto& [forward, input, weight] = times[l];
    Layer layer;
    const LayerTimes fast{Nanoseconds{forward}, Nanoseconds{input}, Nanoseconds{weight},
                          Nanoseconds{0}};
    const LayerTimes slow{3 * fast.forward, 3 * fast.backward_input, 3 * fast.backward_weight,
                          Nanoseconds{0}};
    layer.times = {fast, slow};
    layers.layers.push_back(layer);
    if (l > 0)
      layers.values.push_back(
          {"v", LayerId{l - 1}, {LayerId{l}}, Bytes{1}, Bytes{1}, Nanoseconds{0}});
  }
  Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e9}, Nanoseconds{0});
  cluster.kinds.push_back(DeviceKind{});
  cluster.kind_of_device[1] = 1;
  Problem problem{.layers = layers, .cluster = cluster};
  problem.device_of_rank = {DeviceId{0}};
  const auto bound = [&](const Schedule& schedule) {
    return segment_bound(CutModel(layers, cluster, MemoryRule::Lifetimes), problem, schedule);
  };
  using enum Op;
  const Schedule late = in_order({{Forward, 0},
                                  {Forward, 1},
                                  {BackwardInput, 0},
                                  {BackwardInput, 1},
                                  {BackwardWeight, 0},
                                  {BackwardWeight, 1}});
  const Schedule between = in_order({{Forward, 0},
                                     {BackwardInput, 0},
                                     {BackwardWeight, 0},
                                     {Forward, 1},
                                     {BackwardInput, 1},
                                     {BackwardWeight, 1}});
  const Schedule whole = in_order({{Forward, 0}, {Forward, 1}, {Backward, 0}, {Backward, 1}});
  EXPECT_EQ(bound(late), 7 + 2 * 30 + 100);
  EXPECT_EQ(bound(between), 7 + 2 * 30 + 30 + 100);
  EXPECT_EQ(bound(whole), 7 + 2 * 30 + 2 * 30 + 100);
  const HeaviestSegment heaviest =  // of any order, "late" among them
      heaviest_segment(CutModel(layers, cluster, MemoryRule::Lifetimes), problem, 2);
  EXPECT_EQ(heaviest.bound, bound(late));
  EXPECT_EQ(heaviest.segment, 2u);
  EXPECT_EQ(one_microbatch_bound(problem), 18 + 122);
  // On slow devices alone all takes three times as long, beside a fast one it does not.
  problem.device_of_rank = {DeviceId{1}};
  EXPECT_EQ(bound(between), 3 * 197);
  problem.device_of_rank = {DeviceId{1}, DeviceId{0}};
  EXPECT_EQ(bound(between), 197);
  // Without gradients behind c nothing waits for it: all its own work counts, to the end.
  layers.values[0].has_gradient = layers.values[1].has_gradient = false;
  EXPECT_EQ(bound(late), 7 + 2 * 60);
  EXPECT_EQ(one_microbatch_bound(problem), 7 + 50);
  // c and d in one piece: d's work counts, too.
  layers.layers[2].no_cut_after = "in one piece";
  EXPECT_EQ(bound(late), 7 + 2 * 63);
  // c reads nothing: it waits for nothing.
  layers.values.erase(layers.values.begin() + 1);
  EXPECT_EQ(bound(late), 2 * 63);
}

TEST(SegmentBound, IsNotAboveTheBruteForceOptimumAndNearItWithOneHeavyLayer) {
  std::mt19937 random(31);
  int near = 0;
  for (int round = 0; round < 300; ++round) {
    Instance instance = random_instance(random, 1, 0.5);
    for (LayerTimes& t : instance.layers.layers[random() % instance.layers.size()].times)
      t.forward *= 20, t.backward_input *= 20, t.backward_weight *= 20;
    const Problem problem = instance.problem();
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    const double best = brute_force(problem, instance.schedules[0]).time;
    const double bound = segment_bound(model, problem, generate(instance.schedules[0]));
    ASSERT_LE(bound, best) << round;
    near += bound > 0.95 * best;
  }
  EXPECT_GT(near, 5);
}

}  // namespace
}  // namespace pfeife
