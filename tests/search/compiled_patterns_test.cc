// Estimates from kept graphs against those made anew.
#include "planner/cost/compiled_patterns.h"

#include <gtest/gtest.h>

#include "planner/cost/evaluate.h"
#include "planner/cost/stage_costs.h"
#include "planner/ir/lower.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

bool has_overlap(const Schedule& schedule) {
  return std::ranges::any_of(schedule.rows, [](const auto& row) {
    return std::ranges::any_of(
        row, [](const Cell& cell) { return std::holds_alternative<Overlap>(cell); });
  });
}

TEST(CompiledPatterns, EqualTheFullEstimateWhicheverPatternsCameBefore) {
  std::mt19937 random(3);
  std::size_t most_patterns = 0, asked_again = 0, shared = 0, overlaps = 0;
  for (int round = 0; round < 60; ++round) {
    RandomShape shape;
    shape.layers = 6 + random() % 8;
    const Layers layers = random_layers(random, shape);
    const std::size_t ranks = 2 + random() % 3;
    const Cluster cluster = random_cluster(random, ranks, true);
    ScheduleSpec spec = random_spec(random, ranks, 1 + random() % 5, {1, 2});
    if (round % 4 == 0) spec = {"dualpipev", ranks, 2 * ranks + random() % 3, 2, {}, {}};
    const Schedule schedule = generate(spec);
    const Placement placement = placement_for(spec);
    std::vector<Partition> all;
    for_each_partition(layers, spec.stages(), [&](const Partition& p) { all.push_back(p); });
    if (all.empty()) continue;
    CompiledPatterns patterns;
    std::vector<StageGraph> seen;
    for (int asked = 0; asked < 60; ++asked) {
      const Partition& cuts = all[random() % all.size()];
      std::vector<bool> recompute(spec.stages());
      for (std::size_t s = 0; s < recompute.size(); ++s) recompute[s] = random() % 2 == 0;
      StageCosts costs = stage_costs(layers, cuts, placement, cluster, recompute);
      costs.overlap_factor = 1 + static_cast<double>(random() % 5) / 7;
      ASSERT_EQ(patterns.estimate(schedule, placement, costs),
                evaluate_lowered(costs, lower(schedule, costs, placement), placement).estimate)
          << "round " << round;
      const StageGraph stages = stage_graph(costs);
      const bool again = std::ranges::find(seen, stages) != seen.end();
      asked_again += again, shared += !costs.reductions.empty();
      overlaps += costs.reductions.empty() && has_overlap(schedule);
      if (!again) seen.push_back(stages);
    }
    most_patterns = std::max(most_patterns, seen.size());
  }
  EXPECT_GT(most_patterns, 8u);  // more than are kept
  EXPECT_GT(asked_again, 500u);
  EXPECT_GT(shared, 300u);
  EXPECT_LT(shared, 2500u);
  EXPECT_GT(overlaps, 50u);
}

}  // namespace
}  // namespace pfeife
