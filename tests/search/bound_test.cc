// Proof is proof: bounds and proven optima against brute force over all cuts.
#include <gtest/gtest.h>

#include <limits>

#include "planner/search/branch_and_bound.h"
#include "planner/search/evaluate.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Best {
  double time = kInfinite;
  std::vector<Partition> at;
  std::size_t tried = 0;
};
Best brute_force(const Problem& problem, const ScheduleSpec& spec) {
  Best best;
  const Schedule schedule = generate(spec);
  const Placement placement = placement_for(spec);
  for_each_partition(problem.layers, spec.stages(), [&](const Partition& partition) {
    ++best.tried;
    const EvaluatedPlan plan =
        evaluate(problem.layers, problem.cluster, schedule, placement, partition);
    for (std::size_t r = 0; r < plan.peak_memory.size(); ++r)
      if (plan.peak_memory[r] > problem.memory_limit[r]) return;
    const auto time = static_cast<double>(plan.estimate.count());
    if (time < best.time) best.time = time, best.at.clear();
    if (time == best.time) best.at.push_back(partition);
  });
  return best;
}

TEST(BranchAndBound, ProvesTheBruteForceOptimumOfEverySchedule) {
  std::mt19937 random(5);
  int infeasible = 0, feasible = 0, root_closed = 0;
  for (int round = 0; round < 600; ++round) {
    RandomShape shape;
    shape.layers = 5 + random() % 7;
    const Layers layers = random_layers(random, shape);
    const std::size_t ranks = 1 + random() % 3, microbatches = 1 + random() % 5;
    const Cluster cluster = random_cluster(random, ranks, true);
    const ScheduleSpec spec = random_spec(random, ranks, microbatches, {1, 2, 3});
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {spec}};
    for (std::size_t r = 0; r < ranks; ++r) {
      problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
      problem.memory_limit.emplace_back(random() % 2 ? 1 << 30 : 1500 + random() % 9000);
    }
    const CutModel model(layers, cluster, MemoryRule::Lifetimes);
    const Best best = brute_force(problem, spec);
    if (model.last() < static_cast<std::int32_t>(spec.stages())) {
      EXPECT_EQ(best.tried, 0U);
      continue;
    }
    Candidates candidates(model, problem, spec);
    BranchAndBound proof(candidates);
    proof.bound_root(kInfinite);
    ASSERT_LE(proof.bound(), best.time)
        << round << " root " << spec.family << " D" << ranks << " N" << microbatches << " "
        << knobs(spec) << " V" << spec.loops << " limit " << problem.memory_limit[0].value;
    root_closed += proof.closed();
    for (int step = 0; step < 10000 && !proof.closed(); ++step) {
      proof.run(1, kInfinite);
      ASSERT_LE(proof.bound(), best.time) << round << " " << spec.family;
    }
    ASSERT_TRUE(proof.closed()) << round;
    EXPECT_EQ(candidates.best_time(), best.time) << round << " " << spec.family;
    (best.time < kInfinite ? feasible : infeasible) += 1;
  }
  EXPECT_GT(infeasible, 30);
  EXPECT_GT(feasible, 300);
}

}  // namespace
}  // namespace pfeife
