// One number of recomputed blocks for all stages: against every number, priced in full.
#include "planner/search/steps/equal_blocks.h"

#include <gtest/gtest.h>

#include "planner/cost/stages/blocks.h"
#include "planner/search/price/price.h"
#include "planner/search/search.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

/// Layers 1 to 12 are `layers.0` to `layers.11`; 0 and 13 are in no numbered module.
struct Numbered {
  Layers layers;
  Cluster cluster;
  std::size_t ranks = 0;
  Bytes limit{0};

  Problem problem() const {
    Problem asked{.layers = layers, .cluster = cluster};
    asked.schedules = {{.family = "1f1b", .ranks = ranks, .microbatches = 4}};
    for (std::size_t r = 0; r < ranks; ++r) asked.device_of_rank.emplace_back(r);
    asked.memory_limit.assign(ranks, limit);
    asked.recompute = Recompute::Blocks;
    asked.blocks = model_blocks(layers);
    return asked;
  }
};

Numbered random_numbered(std::mt19937& random, std::size_t ranks) {
  Numbered made{.layers = random_layers(random, {.layers = 14, .illegal_cuts = false}),
                .cluster = random_cluster(random, ranks, true),
                .ranks = ranks};
  for (std::size_t l = 1; l < 13; ++l)
    made.layers.layers[l].module_path = "layers." + std::to_string(l - 1);
  for (Layer& layer : made.layers.layers) layer.saved.value *= 4;
  made.limit = Bytes{static_cast<std::int64_t>((9000 + random() % 24000) / ranks)};
  return made;
}

/// The first n numbered layers of each stage.
std::vector<LayerRange> first_of_stages(const Partition& cuts, std::size_t n) {
  std::vector<LayerRange> blocks;
  for (std::size_t stage = 0; stage < cuts.stages(); ++stage) {
    std::size_t taken = 0;
    for (std::size_t l = cuts.begin(stage); l < cuts.end(stage, 14) && taken < n; ++l)
      if (l >= 1 && l <= 12) blocks.push_back({LayerId{l}, LayerId{l}}), ++taken;
  }
  return blocks;
}

TEST(EqualBlocks, AreTheFewestFirstOnesThatFit) {
  std::mt19937 random(31);
  int changed = 0, raised = 0, kept = 0;
  for (int round = 0; round < 120; ++round) {
    const Numbered made = random_numbered(random, 2 + random() % 2);
    const Problem problem = made.problem();
    Pool pool(search(problem, {.iterations = 20}), problem.memory_limit);
    if (pool.answer().plans.empty()) continue;
    const std::vector<Priced> before = pool.answer().plans;
    make_blocks_equal(problem, pool);
    if (pool.answer().plans == before) {
      ++kept;
      continue;
    }
    ++changed;
    EXPECT_LE(pool.answer().plans.size(), before.size());
    for (const Priced& plan : pool.answer().plans) {
      EXPECT_TRUE(fits(plan.peak_memory, problem.memory_limit)) << round;
      EXPECT_GE(plan.estimate, pool.answer().bound->time) << round;
      if (!plan.activations.recomputes()) continue;
      std::size_t n = 1;
      while (n < 12 && first_of_stages(plan.partition, n) != plan.activations.blocks) ++n;
      EXPECT_EQ(first_of_stages(plan.partition, n), plan.activations.blocks) << round;
      for (std::size_t fewer = 1; fewer < n; ++fewer) {
        Choice choice = plan;
        choice.activations.blocks = first_of_stages(plan.partition, fewer);
        EXPECT_FALSE(fitting(problem, choice)) << round;
      }
      raised += n > 1;
    }
  }
  EXPECT_GT(changed, 10);
  EXPECT_GT(raised, 5);
  EXPECT_GT(kept, 5);
}

}  // namespace
}  // namespace pfeife
