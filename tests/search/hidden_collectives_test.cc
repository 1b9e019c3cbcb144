// F and B side by side hide collectives: how long they take, and what the search makes of it
// against brute force over all cuts.
#include <gtest/gtest.h>

#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/schedule/action_time.h"
#include "planner/search/bound/work_bound.h"
#include "tests/search/random_instance.h"

namespace pfeife {
namespace {

using Ns = Nanoseconds;

/// F of stage 0 and B of stage 1 side by side. F: 10, of which 4 are collectives; I and W: 12, of
/// which 3 are, and 8.
struct TwoStages {
  StageCosts costs = uniform_costs(2, Ns{10}, Ns{12}, Ns{8}, Ns{0});
  std::vector<Action> both = {forward(StageId{0}, MicrobatchId{4}),
                              backward(StageId{1}, MicrobatchId{0})};
  TwoStages(std::int64_t of_forward, std::int64_t of_backward) {
    costs.stages[0].forward_collectives = Ns{of_forward};
    costs.stages[1].backward_collectives = Ns{of_backward};
  }
  Nanoseconds time() const {
    return side_by_side_time(both, costs, [](const Action&) { return false; });
  }
};

TEST(SideBySide, TakesTheLongerOfComputeAndCollectivesAndNoneIsShorterThanByItself) {
  EXPECT_EQ(TwoStages(0, 0).time(), Ns{30});
  EXPECT_EQ(TwoStages(4, 3).time(), Ns{23});   // 6 + 17 are computed beside 4 + 3
  EXPECT_EQ(TwoStages(9, 12).time(), Ns{21});  // 1 + 8 beside 9 + 12
  EXPECT_EQ(TwoStages(0, 12).time(), Ns{20});  // 18 beside 12; B takes 20 by itself
  TwoStages slower(4, 3);
  slower.costs.overlap_factor = 1.5;
  EXPECT_EQ(slower.time(), Ns{35});  // 23 x 1.5, rounded
}

TEST(SideBySide, OnlyFamiliesThatSayItHaveSuchCells) {
  for (const Family& one : families()) {
    const ScheduleSpec spec{one.name, 2, 4, one.refuse({one.name, 2, 4, 1, {}, {}}) ? 2u : 1u};
    bool found = false;
    for (const std::vector<Cell>& row : generate(spec).rows)
      for (const Cell& cell : row) found = found || std::holds_alternative<Overlap>(cell);
    EXPECT_EQ(found, one.side_by_side) << one.name;
  }
}

/// Every layer waits for up to `share` of its forward and of its backward for the inputs.
void add_collectives(Layers& layers, std::mt19937& random, double share) {
  for (const Layer& layer : layers.layers) {
    const LayerTimes &a = layer.times[0], &b = layer.times[1];
    const auto part = [&](Nanoseconds most) {
      const double of = share * static_cast<double>(random() % 1000) / 1000;
      return Ns{static_cast<std::int64_t>(of * static_cast<double>(most.count()))};
    };
    layers.collectives.push_back(
        {part(std::min(a.forward, b.forward)), part(std::min(a.backward_input, b.backward_input))});
  }
}

/// The layers' times in random steps.
void add_steps(Layers& layers, std::mt19937& random) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<PassStep>& steps = layers.steps.emplace_back();
    for (std::size_t count = random() % 5; count > 0; --count) {
      const auto kind = static_cast<WorkKind>(random() % kWorkKinds);
      const auto part = [&] { return Ns{static_cast<std::int64_t>(random() % 100)}; };
      steps.push_back({kind == WorkKind::WeightGradient ? WorkKind::Compute : kind, part(), part(),
                       communicates(kind) ? Ns{0} : part()});
    }
  }
}

TEST(HiddenCollectives, OfAStageAreThoseOfItsLayersAndARecomputedForwardHidesNone) {
  std::mt19937 random(3);
  Layers layers = random_layers(random, {.layers = 6, .illegal_cuts = false});
  add_collectives(layers, random, 0.5);
  layers.overlap_factor = 1.25;
  const Partition partition{{2}};
  const Placement placement = placement_for({"1f1b", 2, 2});
  const Cluster cluster = random_cluster(random, 2, false);
  for (const bool recompute : {false, true}) {
    const StageCosts costs =
        stage_costs(layers, partition, placement, cluster, {.stages = {recompute, recompute}});
    EXPECT_EQ(costs.overlap_factor, 1.25);
    for (std::size_t s = 0; s < 2; ++s) {
      Nanoseconds forward{0}, backward{0};
      for (std::size_t l = partition.begin(s); l < partition.end(s, 6); ++l)
        forward += layers.collectives[l].forward, backward += layers.collectives[l].backward;
      EXPECT_EQ(costs.stages[s].forward_collectives, forward);
      EXPECT_EQ(costs.stages[s].backward_collectives, backward);
    }
  }
}

// Four layers that compute 8 and wait 14 for each microbatch: however they are cut, some rank of
// two has two of them, and waits 112 for four microbatches. By compute alone the bound is below
// that.
TEST(HiddenCollectives, AreABoundWhereTheyAreLongerThanCompute) {
  Layers layers{.name = "four", .digest = std::string(64, '0')};
  for (std::size_t l = 0; l < 4; ++l) {
    layers.layers.push_back({.name = std::to_string(l), .times = {{Ns{10}, Ns{12}, Ns{0}}}});
    layers.collectives.push_back({Ns{6}, Ns{8}});
    if (l > 0)
      layers.values.push_back(
          {std::to_string(l), LayerId{l - 1}, {LayerId{l}}, Bytes{1}, Bytes{1}});
  }
  const Cluster cluster = uniform_cluster(2, {.memory = kGiB}, {1e12}, Ns{0});
  const ScheduleSpec spec{"dualpipev", 2, 4, 2, {}, {}};
  const std::vector<DeviceId> devices{DeviceId{0}, DeviceId{1}};
  const Problem problem{layers, cluster, {spec}, devices, {kGiB, kGiB}};
  const Layers compute = without_collectives(layers);
  EXPECT_LT(work_bound(with_layers(problem, compute)), 112);
  EXPECT_GE(work_bound(problem), 112);
  const double least = brute_force(problem, spec).time;
  EXPECT_LE(work_bound(problem), least);
  const Answer outcome = search(problem, {});
  ASSERT_TRUE(outcome.bound);
  EXPECT_GE(outcome.bound->time, Ns{112});
}

TEST(HiddenCollectives, NoBoundIsAboveTheBestOfAllCutsAndPlansTakeWhatTheySay) {
  std::mt19937 random(5);
  int raised = 0;
  int bounds = 0, best = 0, hidden = 0, found = 0;
  for (int round = 0; round < 120; ++round) {
    Instance instance = random_instance(random, 0);
    instance.layers = random_layers(random, {.layers = 5 + random() % 5});
    add_collectives(instance.layers, random, 0.25 * static_cast<double>(1 + round % 4));
    instance.layers.overlap_factor = 1 + 0.25 * static_cast<double>(round % 2);
    if (round % 5 > 2) add_steps(instance.layers, random);
    instance.cluster = random_cluster(random, 2, true);
    instance.memory_limit.resize(2, Bytes{1 << 30});
    instance.schedules = {{"dualpipev", 2, 4 + random() % 3, 2, {}, {}}};
    if (round % 3 != 0)
      instance.schedules.push_back({"zbv", 2, instance.schedules[0].microbatches, 2, {}, {}});
    if (round % 3 == 2)
      instance.schedules.push_back({"1f1b", 2, instance.schedules[0].microbatches, 1, {}, {}});
    const Problem problem = instance.problem();
    double least = std::numeric_limits<double>::infinity();
    for (const ScheduleSpec& spec : instance.schedules)
      least = std::min(least, brute_force(problem, spec).time);
    const Answer outcome = search(problem, {.keep = 3});
    if (outcome.bound) {
      ++bounds;
      EXPECT_LE(static_cast<double>(outcome.bound->time.count()), least) << round;
    }
    const double bound = work_bound(problem);
    EXPECT_LE(bound, least) << round;
    const Layers compute = without_collectives(instance.layers);
    raised += bound > work_bound(with_layers(problem, compute));
    EXPECT_EQ(outcome.plans.empty(), least == std::numeric_limits<double>::infinity()) << round;
    EXPECT_FALSE(outcome.infeasible && !outcome.plans.empty()) << round;
    if (outcome.plans.empty()) continue;
    ++found;
    for (const Priced& plan : outcome.plans) {
      const Placement placement = placement_for(plan.spec);
      Prices full =
          evaluate(problem.layers, problem.cluster, generate(plan.spec), placement, plan.partition);
      if (plan.receives == Receives::AtNeed) full = received_late(full, placement);
      EXPECT_EQ(plan.estimate, full.estimate) << round;
      EXPECT_EQ(plan.peak_memory, full.peak_memory) << round;
    }
    const Priced& first = outcome.plans.front();
    best += static_cast<double>(first.estimate.count()) == least;
    if (first.spec.family != "dualpipev") continue;
    Layers sum = instance.layers;
    sum.collectives.clear();
    hidden += first.estimate < evaluate(sum, problem.cluster, generate(first.spec),
                                        placement_for(first.spec), first.partition)
                                   .estimate;
  }
  EXPECT_GT(raised, 60);
  EXPECT_GT(found, 60);
  EXPECT_GT(bounds, 60);
  EXPECT_GT(hidden, 30);
  EXPECT_GT(best, found / 2);
}

}  // namespace
}  // namespace pfeife
