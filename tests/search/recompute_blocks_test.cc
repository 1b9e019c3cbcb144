// The choice of recomputed blocks, against brute force over cuts and all subsets of the blocks.
#include <gtest/gtest.h>

#include "planner/cost/stages/blocks.h"
#include "planner/search/price/block_choice.h"
#include "planner/search/price/recomputation.h"
#include "tests/search/as_told.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

constexpr double kNoStep = std::numeric_limits<double>::infinity();

struct BlockInstance {
  Layers layers;
  Cluster cluster;
  std::vector<ScheduleSpec> schedules;
  std::vector<LayerRange> blocks;
  std::size_t ranks = 0;
  Bytes limit{0};

  Problem problem(Recompute recompute) const {
    Problem p{.layers = layers, .cluster = cluster, .schedules = schedules};
    for (std::size_t r = 0; r < ranks; ++r) p.device_of_rank.emplace_back(r);
    p.memory_limit.assign(ranks, limit);
    p.recompute = recompute;
    p.blocks = blocks;
    return p;
  }
};

/// Memory limits about where it becomes necessary to recompute.
BlockInstance random_block_instance(std::mt19937& random, std::size_t layers,
                                    std::size_t most_blocks) {
  BlockInstance instance;
  RandomShape shape;
  shape.layers = layers, shape.illegal_cuts = false;
  instance.layers = random_layers(random, shape);
  for (Layer& layer : instance.layers.layers) layer.saved.value *= 4;
  instance.ranks = 1 + random() % 2;
  instance.cluster = random_cluster(random, instance.ranks, true);
  instance.schedules.push_back(random_spec(random, instance.ranks, 1 + random() % 4, {1, 2}));
  for (std::size_t l = 0; l < layers && instance.blocks.size() < most_blocks;) {
    const std::size_t last = std::min(layers - 1, l + random() % 3);
    instance.blocks.push_back({LayerId{l}, LayerId{last}});
    l = last + 1 + random() % 2;
  }
  instance.limit =
      Bytes{static_cast<std::int64_t>((5000 + random() % 14000) * layers / 8 / instance.ranks)};
  return instance;
}

/// Every layer is in a block.
bool are_all(const Problem& problem) {
  std::size_t layers = 0;
  for (const LayerRange& block : problem.blocks)
    layers += block.last.index() - block.first.index() + 1;
  return layers == problem.layers->size();
}

/// The fastest plan that fits, of all cuts and all subsets of the blocks that the cuts leave, and
/// of the stages if every layer is in a block.
double brute_force_blocks(const Problem& problem) {
  double best = kNoStep;
  if (are_all(problem)) {
    Problem of_stages = problem;
    of_stages.recompute = Recompute::Choose;
    best = brute_force(of_stages, problem.schedules.front()).time;
  }
  const ScheduleSpec& spec = problem.schedules.front();
  for_each_partition(problem.layers, spec.stages(), [&](const Partition& cuts) {
    const std::vector<LayerRange> blocks = cut_blocks(problem.blocks, cuts);
    for (std::size_t subset = 0; subset < std::size_t{1} << blocks.size(); ++subset) {
      std::vector<LayerRange> chosen;
      for (std::size_t b = 0; b < blocks.size(); ++b)
        if ((subset >> b & 1U) != 0) chosen.push_back(blocks[b]);
      const Prices plan =
          evaluate(problem.layers, problem.cluster, generate(spec), placement_for(spec), cuts,
                   MemoryRule::Lifetimes, {.blocks = chosen});
      if (fits(plan.peak_memory, problem.memory_limit) ||
          fits(received_late(plan, placement_for(spec)).peak_memory, problem.memory_limit))
        best = std::min(best, static_cast<double>(plan.estimate.count()));
    }
  });
  return best;
}

TEST(RecomputeBlocks, AreTheBestSubsetOfAllOnTinyProblems) {
  std::mt19937 random(21);
  int needed = 0, faster = 0, never = 0, some = 0;
  for (int round = 0; round < 600; ++round) {
    const BlockInstance instance = random_block_instance(random, 5 + random() % 2, 3);
    if (instance.schedules.front().family == "zb_greedy") continue;
    const Problem problem = instance.problem(Recompute::Blocks);
    const double best = brute_force_blocks(problem);
    const double none = brute_force(instance.problem(Recompute::None), instance.schedules[0]).time;
    const Answer outcome = search(problem, {.iterations = 30});
    if (best == kNoStep) {
      ++never;
      EXPECT_TRUE(outcome.plans.empty()) << round;
      continue;
    }
    ASSERT_FALSE(outcome.plans.empty()) << round;
    const Priced& plan = outcome.plans.front();
    EXPECT_EQ(static_cast<double>(plan.estimate.count()), best) << round;
    EXPECT_LE(static_cast<double>(outcome.bound->time.count()), best) << round;
    expect_as_told(problem, plan);
    needed += none == kNoStep, faster += none != kNoStep && best < none;
    some += !plan.activations.blocks.empty() &&
            plan.activations.blocks != cut_blocks(problem.blocks, plan.partition);
  }
  EXPECT_GT(needed, 5);
  EXPECT_GT(faster, 5);
  EXPECT_GT(some, 5);
  EXPECT_GT(never, 5);
}

TEST(RecomputeBlocks, AreNeverBoundedAboveTheBestAndFitWhereNotAllAreTried) {
  std::mt19937 random(22);
  int chosen = 0, fits = 0, missed = 0;
  int merged = 0;    // blocks taken together, which brute force does not try
  double above = 0;  // the best, by shares of it
  for (int round = 0; round < 60; ++round) {
    BlockInstance instance = random_block_instance(random, 8, 8);
    if (instance.schedules.front().family == "zb_greedy") continue;
    instance.blocks.clear();  // not all, so that no stage is recomputed as a whole
    for (int l = 1; l < 8; ++l) instance.blocks.push_back({LayerId{l}, LayerId{l}});
    const Problem problem = instance.problem(Recompute::Blocks);
    const double best = brute_force_blocks(problem);
    const Answer outcome = search(problem, {.iterations = 30});
    if (outcome.plans.empty()) {
      missed += best < kNoStep;
      EXPECT_TRUE(best == kNoStep || !outcome.infeasible->proven) << round;
      continue;
    }
    const Priced& plan = outcome.plans.front();
    EXPECT_LE(static_cast<double>(outcome.bound->time.count()), best) << round;
    expect_as_told(problem, plan);
    ++fits, chosen += !plan.activations.blocks.empty();
    if (best < kNoStep)
      above += std::max(0.0, static_cast<double>(plan.estimate.count()) / best - 1);
    merged += static_cast<double>(plan.estimate.count()) < best;
  }
  EXPECT_GT(chosen, 5);
  EXPECT_LT(above / fits, 0.04);
  EXPECT_LE(missed, 2);
  EXPECT_GT(merged, 0);
}

/// Eight layers, each a block but the first, on one rank that keeps four microbatches of them: 10 B
/// pass between two.
BlockInstance one_rank(const std::vector<std::pair<int, int>>& saved_and_forward) {
  BlockInstance instance;
  instance.ranks = 1;
  instance.cluster = uniform_cluster(1, DeviceKind{}, {1e9}, Nanoseconds{0});
  instance.schedules = {{.family = "gpipe", .ranks = 1, .microbatches = 4}};
  for (const auto& [saved, forward] : saved_and_forward) {
    const LayerId l{instance.layers.size()};
    Layer& layer = instance.layers.layers.emplace_back();
    layer.times = {{Nanoseconds{forward}, Nanoseconds{50}, Nanoseconds{50}, Nanoseconds{0}}};
    layer.saved = Bytes{saved};
    if (l.value == 0) continue;
    instance.layers.values.push_back({"v", LayerId{l.value - 1}, {l}, Bytes{10}, Bytes{10}, {}});
    instance.blocks.push_back({l, l});
  }
  return instance;
}

std::vector<LayerRange> chosen_blocks(const BlockInstance& instance) {
  const Answer outcome = search(instance.problem(Recompute::Blocks), {.iterations = 30});
  return outcome.plans.empty() ? std::vector<LayerRange>{}
                               : outcome.plans.front().activations.blocks;
}

// Two of them free 4 x 2 x (100 - 10) B, and one at a time is made again: 100 B.
TEST(RecomputeBlocks, AreThoseThatFreeMostForTheirTime) {
  BlockInstance instance = one_rank(
      {{100, 40}, {100, 70}, {100, 20}, {100, 60}, {100, 50}, {100, 10}, {100, 80}, {100, 30}});
  instance.limit = Bytes{4 * 800 - 4 * 2 * 90 + 100};
  EXPECT_EQ(chosen_blocks(instance),
            (std::vector<LayerRange>{{LayerId{2}, LayerId{2}}, {LayerId{5}, LayerId{5}}}));
}

// Layer 6 frees most for its time, but not enough; with layer 3 it is not needed any more.
TEST(RecomputeBlocks, LeaveOutWhatALargerOneMakesNeedless) {
  BlockInstance instance = one_rank(
      {{100, 90}, {100, 90}, {100, 90}, {1000, 200}, {100, 90}, {100, 90}, {100, 10}, {100, 90}});
  instance.limit = Bytes{4 * 1700 - 4 * 990 + 1000};
  EXPECT_EQ(chosen_blocks(instance), (std::vector<LayerRange>{{LayerId{3}, LayerId{3}}}));
}

TEST(RecomputeBlocks, AreNoneWithoutPressureAndThePlanIsTheSame) {
  std::mt19937 random(23);
  for (int round = 0; round < 10; ++round) {
    BlockInstance instance = random_block_instance(random, 8, 8);
    instance.limit = Bytes{1 << 30};
    const Answer none = search(instance.problem(Recompute::None), {.iterations = 30});
    const Answer blocks = search(instance.problem(Recompute::Blocks), {.iterations = 30});
    EXPECT_EQ(none.plans, blocks.plans);
    EXPECT_EQ(none.bound->time, blocks.bound->time);
  }
}

// A stage recomputed as a whole is one more choice.
TEST(RecomputeBlocks, AreNeverWorseThanTheChoiceOfStages) {
  std::mt19937 random(24);
  int recomputed = 0, faster = 0, fits_alone = 0;
  for (int round = 0; round < 150; ++round) {
    const std::size_t layers = 6 + random() % 8;
    BlockInstance instance = random_block_instance(random, layers, layers);
    for (std::size_t b = 0; b < instance.blocks.size(); ++b)  // no layers between them
      instance.blocks[b].last = b + 1 == instance.blocks.size()
                                    ? LayerId{layers - 1}
                                    : LayerId{instance.blocks[b + 1].first.value - 1};
    const Answer stages = search(instance.problem(Recompute::Choose), {.iterations = 30});
    const Answer blocks = search(instance.problem(Recompute::Blocks), {.iterations = 30});
    if (blocks.plans.empty()) {
      EXPECT_TRUE(stages.plans.empty()) << round;
      continue;
    }
    if (stages.plans.empty()) {
      ++fits_alone;
      continue;
    }
    EXPECT_LE(blocks.plans.front().estimate, stages.plans.front().estimate) << round;
    recomputed += !stages.plans.front().activations.stages.empty();
    faster += blocks.plans.front().estimate < stages.plans.front().estimate;
  }
  EXPECT_GT(recomputed, 5);
  EXPECT_GT(faster, 5);
  EXPECT_GT(fits_alone, 2);
}

// What a rank's stages have chosen before is remembered, by their ends and by the room they have.
TEST(RecomputeBlocks, AreChosenAsIfNothingHadBeenAskedBefore) {
  std::mt19937 random(25);
  int chosen = 0, different = 0;
  for (int round = 0; round < 20; ++round) {
    BlockInstance instance = random_block_instance(random, 12, 12);
    const ScheduleSpec spec{.family = "1f1b", .ranks = instance.ranks, .microbatches = 4};
    const Placement placement = placement_for(spec);
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    const std::vector<Bytes> limits(instance.ranks, instance.limit);
    const auto fresh = [&] {
      return BlockChoice(model, generate(spec), placement, limits, instance.blocks);
    };
    BlockChoice asked = fresh();
    std::vector<LayerRange> before;
    for (int question = 0; question < 40; ++question) {
      Cuts cuts{0, model.last()};
      if (instance.ranks == 2)
        cuts.insert(cuts.begin() + 1, 1 + static_cast<std::int32_t>(random() % 3));
      const std::vector<std::size_t> kind(instance.ranks, 0);
      const std::vector<double> margin(instance.ranks, static_cast<double>(random() % 3 * 2000));
      const auto expected = fresh().choose(model, cuts, kind, margin);
      const auto told = asked.choose(model, cuts, kind, margin);
      const auto weighed = asked.weigh(model, cuts, kind, margin);
      EXPECT_EQ(told.blocks, expected.blocks);
      EXPECT_EQ(told.again, expected.again);
      EXPECT_EQ(told.peak, expected.peak);
      EXPECT_EQ(told.fits, expected.fits);
      EXPECT_EQ(weighed.again, expected.again);
      EXPECT_EQ(weighed.peak, expected.peak);
      const auto judged = asked.of(model, cuts, kind, told.blocks);
      EXPECT_EQ(told.again, judged.again);
      EXPECT_EQ(told.peak, judged.peak);
      chosen += !told.blocks.empty(), different += told.blocks != before;
      before = told.blocks;
    }
  }
  EXPECT_GT(chosen, 100);
  EXPECT_GT(different, 100);
}

TEST(RecomputeBlocks, AreCountedInTheNameOfAPlan) {
  const ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 4};
  const LayerRange first{LayerId{0}, LayerId{1}}, second{LayerId{3}, LayerId{3}};
  EXPECT_EQ(knobs(Choice{.spec = spec, .activations = {.blocks = {first}}}), "recompute=1 block");
  EXPECT_EQ(knobs(Choice{.spec = spec, .activations = {.blocks = {first, second}}}),
            "recompute=2 blocks");
}

}  // namespace
}  // namespace pfeife
