// The compiled form that the search prices cuts with, against the full way: cost the stages, lower,
// build the dependency graph, take its longest path.
#include "planner/search/program.h"

#include <gtest/gtest.h>

#include "planner/search/cut_costs.h"
#include "planner/cost/evaluate.h"
#include "planner/search/live_memory.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

double length(const PathCounts<std::int32_t>& path, const Program& program,
              const std::vector<double>& durations) {
  double sum = 0;
  for (std::size_t w = 0; w < kWorks; ++w)
    for (std::size_t s = 0; s < program.stages(); ++s)
      sum += path.work[w][s] * durations[program.work(static_cast<Work>(w), s)];
  for (std::size_t i = 1; i < program.stages(); ++i) {
    if (path.forward[i]) sum += path.forward[i] * durations[program.forward_latency(i)];
    if (path.backward[i]) sum += path.backward[i] * durations[program.backward_latency(i)];
  }
  return sum;
}

TEST(Program, EqualsTheFullEstimateOnRandomCutsOfRandomModelsWithEveryFamily) {
  std::mt19937 random(11);
  int exact = 0, skipped = 0, tails = 0, paths = 0;
  for (int round = 0; round < 400; ++round) {
    RandomShape shape;
    shape.layers = 6 + random() % 10;
    const Layers layers = random_layers(random, shape);
    const std::size_t ranks = 1 + random() % 4, microbatches = 1 + random() % 6;
    const Cluster cluster = random_cluster(random, ranks, true);
    const ScheduleSpec spec = random_spec(random, ranks, microbatches, {1, 2, 3});
    const Schedule schedule = generate(spec);
    const Placement placement = placement_for(spec);
    const CutModel model(layers, cluster, MemoryRule::Lifetimes);
    CutCosts costs(model, placement);
    const Program program(schedule, placement);
    const LiveMemory live(schedule, placement);
    std::vector<Partition> all;
    for_each_partition(layers, spec.stages(), [&](const Partition& p) { all.push_back(p); });
    std::vector<double> lanes(program.durations() * Program::kLanes), scratch, ends;
    std::vector<double> expected;
    for (std::size_t i = 0; i < Program::kLanes && !all.empty(); ++i) {
      const Partition partition = all[random() % all.size()];
      const Cuts cuts = *model.cuts(partition);
      ASSERT_EQ(model.partition(cuts), partition);
      std::vector<double> durations(program.durations());
      const CutCosts::Priced priced = costs.price(cuts, program, durations.data(), 1);
      program.complete(durations.data(), 1);
      const double found = program.makespan(durations, ends, priced.tail);
      const EvaluatedPlan full = evaluate(layers, cluster, schedule, placement, partition);
      if (priced.exact) {
        EXPECT_EQ(found, static_cast<double>(full.estimate.count())) << round;
        ++exact;
      } else {
        EXPECT_LE(found, static_cast<double>(full.estimate.count())) << round;
        ++skipped;
      }
      tails += priced.tail != nullptr;
      for (std::size_t r = 0; r < ranks; ++r)
        EXPECT_LE(live.peak(model, cuts, r), static_cast<double>(full.peak_memory[r].value));
      const double bare = program.makespan(durations, ends);
      const auto path = program.critical_path(durations, ends);
      EXPECT_EQ(length(path, program, durations), bare);
      ++paths;
      expected.push_back(bare);
      for (std::size_t d = 0; d < durations.size(); ++d)
        lanes[d * Program::kLanes + i] = durations[d];
    }
    if (all.empty()) continue;
    double out[Program::kLanes];
    program.makespans(lanes.data(), scratch, out);
    for (std::size_t i = 0; i < Program::kLanes; ++i) EXPECT_EQ(out[i], expected[i]) << round;
  }
  EXPECT_GT(exact, 3000);
  EXPECT_GT(skipped, 50);
  EXPECT_GT(tails, 100);
}

TEST(Program, NeedsFewMessageSlotsWhateverTheNumberOfMicrobatches) {
  for (const std::size_t microbatches : {16U, 64U}) {
    const ScheduleSpec spec{"1f1b", 8, microbatches, 1, {}, {0}};
    const Program program(generate(spec), placement_for(spec));
    EXPECT_EQ(program.compute_nodes(), 2 * 8 * microbatches);
    EXPECT_LE(program.message_slots(), 16U);
  }
}

}  // namespace
}  // namespace pfeife
