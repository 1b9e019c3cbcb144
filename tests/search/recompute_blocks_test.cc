// The choice of recomputed blocks, against brute force over cuts and all subsets of the blocks.
#include <gtest/gtest.h>

#include "planner/cost/blocks.h"
#include "planner/search/price/recomputation.h"
#include "tests/search/as_told.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Instance {
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
Instance random_instance(std::mt19937& random, std::size_t layers, std::size_t most_blocks) {
  Instance instance;
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

/// The fastest plan that fits, of all cuts and all subsets of the blocks that the cuts leave.
double brute_force_blocks(const Problem& problem) {
  double best = kNever;
  const ScheduleSpec& spec = problem.schedules.front();
  for_each_partition(problem.layers, spec.stages(), [&](const Partition& cuts) {
    const std::vector<LayerRange> blocks = cut_blocks(problem.blocks, cuts);
    for (std::size_t subset = 0; subset < std::size_t{1} << blocks.size(); ++subset) {
      std::vector<LayerRange> chosen;
      for (std::size_t b = 0; b < blocks.size(); ++b)
        if ((subset >> b & 1U) != 0) chosen.push_back(blocks[b]);
      const EvaluatedPlan plan =
          evaluate(problem.layers, problem.cluster, generate(spec), placement_for(spec), cuts,
                   MemoryRule::Lifetimes, {}, chosen);
      if (std::ranges::equal(plan.peak_memory, problem.memory_limit, std::less_equal{}))
        best = std::min(best, static_cast<double>(plan.estimate.count()));
    }
  });
  return best;
}

TEST(RecomputeBlocks, AreTheBestSubsetOfAllOnTinyProblems) {
  std::mt19937 random(21);
  int needed = 0, faster = 0, never = 0, some = 0;
  for (int round = 0; round < 600; ++round) {
    const Instance instance = random_instance(random, 5 + random() % 2, 3);
    if (instance.schedules.front().family == "zb_greedy") continue;
    const Problem problem = instance.problem(Recompute::Blocks);
    const double best = brute_force_blocks(problem);
    const double none = brute_force(instance.problem(Recompute::None), instance.schedules[0]).time;
    const SearchOutcome outcome = search(problem, {.iterations = 30});
    if (best == kNever) {
      ++never;
      EXPECT_TRUE(outcome.plans.empty()) << round;
      continue;
    }
    ASSERT_FALSE(outcome.plans.empty()) << round;
    const PlannedSchedule& plan = outcome.plans.front();
    EXPECT_EQ(static_cast<double>(plan.estimate.count()), best) << round;
    EXPECT_LE(static_cast<double>(outcome.bound->time.count()), best) << round;
    expect_as_told(problem, plan);
    needed += none == kNever, faster += none != kNever && best < none;
    some += !plan.blocks.empty() && plan.blocks != cut_blocks(problem.blocks, plan.partition);
  }
  EXPECT_GT(needed, 5);
  EXPECT_GT(faster, 5);
  EXPECT_GT(some, 5);
  EXPECT_GT(never, 5);
}

TEST(RecomputeBlocks, AreNeverBoundedAboveTheBestAndFitWhereNotAllAreTried) {
  std::mt19937 random(22);
  int chosen = 0, near = 0, fits = 0;
  for (int round = 0; round < 25; ++round) {
    Instance instance = random_instance(random, 8, 8);
    if (instance.schedules.front().family == "zb_greedy") continue;
    instance.blocks = model_blocks(instance.layers);
    if (instance.blocks.size() < 7) {
      instance.blocks.clear();
      for (int l = 0; l < 8; ++l) instance.blocks.push_back({LayerId{l}, LayerId{l}});
    }
    const Problem problem = instance.problem(Recompute::Blocks);
    const double best = brute_force_blocks(problem);
    const SearchOutcome outcome = search(problem, {.iterations = 30});
    if (outcome.plans.empty()) {
      EXPECT_TRUE(best == kNever || !outcome.infeasible->proven) << round;
      continue;
    }
    const PlannedSchedule& plan = outcome.plans.front();
    EXPECT_LE(static_cast<double>(outcome.bound->time.count()), best) << round;
    expect_as_told(problem, plan);
    ++fits, chosen += !plan.blocks.empty();
    near += static_cast<double>(plan.estimate.count()) <= 1.1 * best;
  }
  EXPECT_GT(chosen, 5);
  EXPECT_GE(near, fits - 2);
}

TEST(RecomputeBlocks, AreNoneWithoutPressureAndThePlanIsTheSame) {
  std::mt19937 random(23);
  for (int round = 0; round < 10; ++round) {
    Instance instance = random_instance(random, 8, 8);
    instance.limit = Bytes{1 << 30};
    const SearchOutcome none = search(instance.problem(Recompute::None), {.iterations = 30});
    const SearchOutcome blocks = search(instance.problem(Recompute::Blocks), {.iterations = 30});
    EXPECT_EQ(none.plans, blocks.plans);
    EXPECT_EQ(none.bound->time, blocks.bound->time);
  }
}

TEST(RecomputeBlocks, AreCountedInTheNameOfAPlan) {
  const ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 4};
  EXPECT_EQ(knobs(spec, {}, {{LayerId{0}, LayerId{1}}}), "recompute=1 block");
  EXPECT_EQ(knobs(spec, {}, {{LayerId{0}, LayerId{1}}, {LayerId{3}, LayerId{3}}}),
            "recompute=2 blocks");
}

}  // namespace
}  // namespace pfeife
