// Reductions of replicas beside the last backward: what of them is exposed depends on a stage as a
// whole. The search's price against the full estimate, plan and bound against brute force, and the
// judge on both.
#include <gtest/gtest.h>

#include "planner/io/plan/certificate_file.h"
#include "planner/schedule_tool/certify.h"
#include "planner/search/price/candidate.h"
#include "tests/search/certified.h"

namespace pfeife {
namespace {

using ns = Nanoseconds;

/// Reductions of `layers`, on average as long as `share` of their backwards.
void add_reductions(Layers& layers, std::mt19937& random, double share) {
  for (const Layer& layer : layers.layers) {
    Nanoseconds backward = Nanoseconds::max();
    for (const LayerTimes& times : layer.times)
      backward = std::min(backward, times.backward_input + times.backward_weight);
    const double time = 2 * share * static_cast<double>(random() % 800);
    layers.reductions.push_back({ns(static_cast<std::int64_t>(time)), backward});
  }
}

// Three layers, backward 10, 20, 30, reductions 5, 4, 40. Of all: 40 begins at 30 behind the start
// of backward and ends at 70, 4 and 5 follow, 79; backward ends at 60. Of the last two: 44 less 20.
// The last one: all of its own. The first two: 4 are hidden.
TEST(ExposedReductions, OfThreeLayersByHand) {
  const std::vector<LayerReduction> of = {{ns(5), ns(10)}, {ns(4), ns(20)}, {ns(40), ns(30)}};
  EXPECT_EQ(exposed_reduction(of, 0, 3), ns(19));
  EXPECT_EQ(exposed_reduction(of, 1, 3), ns(24));
  EXPECT_EQ(exposed_reduction(of, 2, 3), ns(40));
  EXPECT_EQ(exposed_reduction(of, 0, 2), ns(5));
  EXPECT_EQ(exposed_reduction(of, 0, 1), ns(5));
  EXPECT_EQ(exposed_reduction({}, 0, 1), ns(0));
}

TEST(ExposedReductions, ArePricedInTheSearchAsInTheFullEstimate) {
  std::mt19937 random(7);
  std::size_t longer = 0, narrow = 0;
  for (int round = 0; round < 80; ++round) {
    RandomShape shape;
    shape.layers = 6 + random() % 8;
    Layers layers = random_layers(random, shape);
    const Layers without = layers;
    add_reductions(layers, random, 0.3 * static_cast<double>(1 + round % 5));
    const std::size_t ranks = 1 + random() % 4;
    const Cluster cluster = random_cluster(random, ranks, true);
    const ScheduleSpec spec = random_spec(random, ranks, 1 + random() % 5, {1, 2});
    const Schedule schedule = generate(spec);
    const Placement placement = placement_for(spec);
    const CutModel model(layers, cluster, MemoryRule::Lifetimes);
    CutCosts costs(model, placement);
    narrow += costs.is_narrow();
    const Program program(schedule, placement);
    std::vector<double> durations(program.durations()), ends;
    std::vector<Program::Narrow> narrow_durations(program.durations());
    for_each_partition(layers, spec.stages(), [&](const Partition& partition) {
      const Cuts cuts = *model.cuts(partition);
      const CutCosts::Priced priced = costs.price(cuts, program, durations.data(), 1);
      program.complete(durations.data(), 1);
      const auto full = evaluate(layers, cluster, schedule, placement, partition).estimate;
      ASSERT_EQ(program.makespan(durations, ends, priced.tail, costs.skips(cuts)),
                static_cast<double>(full.count()));
      costs.price(cuts, program, narrow_durations.data(), 1);
      for (std::size_t s = 0; s < spec.stages(); ++s)
        ASSERT_EQ(narrow_durations[program.work(Work::Optimizer, s)],
                  durations[program.work(Work::Optimizer, s)]);
      longer += full > evaluate(without, cluster, schedule, placement, partition).estimate;
    });
  }
  EXPECT_GT(longer, 1000u);
  EXPECT_GT(narrow, 70u);
}

TEST(ExposedReductions, NoBoundIsAboveTheBestOfAllCutsAndTheJudgeAgrees) {
  std::mt19937 random(11);
  int bounds = 0, certificates = 0, best = 0;
  for (int round = 0; round < 150; ++round) {
    Instance instance = random_instance(random, 2);
    add_reductions(instance.layers, random, 0.2 * static_cast<double>(1 + round % 5));
    if (round % 2 == 0) instance.layers.parameters.back().exchanged = Bytes{7};
    const Problem problem = instance.problem();
    double least = std::numeric_limits<double>::infinity();
    for (const ScheduleSpec& spec : instance.schedules)
      least = std::min(least, brute_force(problem, spec).time);
    const Answer outcome = certified_search(problem);
    if (outcome.bound) {
      ++bounds;
      EXPECT_LE(static_cast<double>(outcome.bound->time.count()), least) << round;
    }
    if (!outcome.plans.empty())
      best += static_cast<double>(outcome.plans[0].estimate.count()) == least;
    if (!outcome.certificate) continue;
    ++certificates;
    EXPECT_EQ(tool::certify(*outcome.certificate).refusal, "") << round;
    const std::string text = certificate_text(*outcome.certificate);
    const Certificate read = read_certificate_text(text, "c");
    EXPECT_EQ(read.layers.reductions, instance.layers.reductions);
    EXPECT_EQ(certificate_text(read), text);
  }
  EXPECT_GT(bounds, 80);
  EXPECT_GT(certificates, 30);
  EXPECT_GT(best, 90);
}

}  // namespace
}  // namespace pfeife
