// The scalar form of the compiled schedule with all that a candidate has, skips that bind and
// recomputed stages among it, against the full way: cost the stages, lower, build the dependency
// graph, take its longest path.
#include <gtest/gtest.h>

#include "planner/cost/estimate/evaluate.h"
#include "planner/search/price/candidate.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

bool has_overlap(const Schedule& schedule) {
  return std::ranges::any_of(schedule.rows, [](const auto& row) {
    return std::ranges::any_of(
        row, [](const Cell& cell) { return std::holds_alternative<Overlap>(cell); });
  });
}

TEST(Skips, ThatBindAreTimedAsInTheFullEstimateWithReductionsOverlapAndRecomputation) {
  std::mt19937 random(3);
  std::size_t binding = 0, tied = 0, overlaps = 0, recomputed = 0, silent = 0;
  for (int round = 0; round < 120; ++round) {
    RandomShape shape;
    shape.layers = 6 + random() % 8;
    Layers layers = random_layers(random, shape);
    for (LayerValue& value : layers.values)  // many that take longer than what they pass over
      if (value.consumers.size() > 1 && random() % 2 == 0)
        value.transfer_time = Nanoseconds{random() % 20000};
    const std::size_t ranks = 2 + random() % 3;
    const Cluster cluster = random_cluster(random, ranks, true);
    ScheduleSpec spec = random_spec(random, ranks, 1 + random() % 5, {1, 2});
    if (round % 4 == 0) spec = {"dualpipev", ranks, 2 * ranks + random() % 3, 2, {}, {}};
    const Schedule schedule = generate(spec);
    const Placement placement = placement_for(spec);
    std::vector<Partition> all;
    for_each_partition(layers, spec.stages(), [&](const Partition& p) { all.push_back(p); });
    if (all.empty()) continue;
    const CutModel model(layers, cluster, MemoryRule::Lifetimes);
    CutCosts costs(model, placement);
    const Program program(schedule, placement);
    std::vector<double> durations(program.durations()), ends;
    for (int asked = 0; asked < 60; ++asked) {
      const Partition& partition = all[random() % all.size()];
      std::vector<bool> recompute(spec.stages());
      for (std::size_t s = 0; s < recompute.size(); ++s) recompute[s] = random() % 2 == 0;
      const Cuts cuts = *model.cuts(partition);
      const CutCosts::Priced priced = costs.price(cuts, program, durations.data(), 1, &recompute);
      program.complete(durations.data(), 1);
      const std::vector<SkipTransfer> skips = costs.skips(cuts);
      const Prices full = evaluate(layers, cluster, schedule, placement, partition,
                                   MemoryRule::Lifetimes, {recompute});
      const auto expected = static_cast<double>(full.estimate.count());
      ASSERT_EQ(program.makespan(durations, ends, priced.tail, skips), expected) << round;
      const double without = program.makespan(durations, ends, priced.tail);
      if (priced.exact) {
        EXPECT_EQ(without, expected);
      }
      if (without == expected) continue;
      ++binding, tied += priced.tail != nullptr, overlaps += has_overlap(schedule);
      recomputed += std::ranges::find(recompute, true) != recompute.end();
      for (const SkipTransfer& skip : skips) silent += skip.backward == Program::kNever;
    }
  }
  EXPECT_GT(binding, 600u);
  EXPECT_GT(tied, 100u);
  EXPECT_GT(overlaps, 200u);
  EXPECT_GT(recomputed, 600u);
  EXPECT_GT(silent, 50u);
}

}  // namespace
}  // namespace pfeife
