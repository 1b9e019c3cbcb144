// Orders built where hardly any fits into the memory: against all orders of tiny pipelines, and
// against one built for each of all cuts.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/schedules/families.h"
#include "planner/search/cuts/min_max.h"
#include "planner/search/orders/built_orders.h"
#include "tests/proofs/one_by_one.h"
#include "tests/search/built_instance.h"
#include "tests/support/instances.h"

namespace pfeife {
namespace {

/// The fastest of all orders and all cuts that fit, one stage a rank; `at` the first of those cuts,
/// empty if nothing fits.
Best best_of_all_orders(const Problem& problem, const ScheduleSpec& spec) {
  Best best;
  const Placement placement = placement_for(spec);
  std::int64_t enough = OneByOne::kNone;
  for_each_partition(problem.layers, spec.ranks, [&](const Partition& cuts) {
    const StageCosts costs = stage_costs(problem.layers, cuts, placement, problem.cluster);
    OneByOne orders(costs, placement, spec.microbatches, problem.memory_limit, 10'000'000);
    const std::int64_t time = orders.best_below(enough);
    EXPECT_FALSE(orders.gave_up());
    if (time != OneByOne::kNone)
      enough = time, best.time = static_cast<double>(time), best.at = {cuts};
  });
  return best;
}

// Messages and temporaries are as large here as what F leaves behind, so that few orders fit.
TEST(TightOrders, AgainstAllOrdersOfAllCuts) {
  std::mt19937 random(53);
  int compared = 0, found = 0, on_cuts = 0;
  const int rounds = static_cast<int>(instances(15));
  for (int round = 0; round < rounds; ++round) {
    BuiltInstance instance = random_built_instance(random, 6, false);
    instance.microbatches = instance.ranks == 2 ? 3 : 2;
    const ScheduleSpec spec = instance.built(1);
    Problem problem = instance.problem({spec});
    problem.receives = Receives::AsReady;
    const Answer free = search(problem, {.iterations = 30});
    if (free.plans.empty()) continue;
    for (std::size_t r = 0; r < instance.ranks; ++r)
      problem.memory_limit[r] =
          Bytes{free.plans[0].peak_memory[r].value * (80 + static_cast<int>(random() % 25)) / 100};
    const Best best = best_of_all_orders(problem, spec);
    if (best.at.empty()) continue;
    const auto time = [&] {
      const Answer outcome = search(problem, {.iterations = 100});
      EXPECT_FALSE(outcome.plans.empty()) << round;
      return outcome.plans.empty() ? 0 : static_cast<double>(outcome.plans[0].estimate.count());
    };
    const double searched = time();
    problem.cuts = best.at[0];
    const double given = time();
    EXPECT_GE(searched, best.time) << round;
    EXPECT_GE(given, best.time) << round;
    ++compared, found += searched == best.time, on_cuts += given == best.time;
  }
  EXPECT_GT(compared, rounds * 2 / 3);
  EXPECT_GE(on_cuts * 10, compared * 9);
  EXPECT_GE(found * 10, compared * 9);
}

TEST(TightOrders, AreOnAverageAsFastAsTheBestOfOneBuiltForEachOfAllCuts) {
  std::mt19937 random(37);
  int compared = 0;
  double ratios = 0;
  const int rounds = static_cast<int>(instances(12));
  for (int round = 0; round < rounds; ++round) {
    BuiltInstance instance = random_built_instance(random, 10, false);
    instance.ranks = 3, instance.microbatches = 6;
    instance.cluster = random_cluster(random, instance.ranks, false);
    instance.memory_limit.assign(instance.ranks, Bytes{1 << 30});
    const ScheduleSpec spec = instance.built(1);
    const auto equal = equal_time_cuts(instance.layers, placement_for(spec), instance.cluster);
    if (!equal) continue;
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    Problem problem = instance.problem({spec});
    problem.receives = Receives::AsReady;
    const auto free = build_on_cuts(model, problem, spec, *model.cuts(*equal));
    for (Bytes& limit : problem.memory_limit)
      limit = Bytes{std::ranges::max(free->best()->peak_memory).value * (5 + round % 4) / 10};
    double best = std::numeric_limits<double>::infinity();
    for_each_partition(instance.layers, instance.ranks, [&](const Partition& cuts) {
      best = std::min(best, build_on_cuts(model, problem, spec, *model.cuts(cuts))->best_time());
    });
    const Answer built = search(problem, {.iterations = 100});
    if (best == std::numeric_limits<double>::infinity()) continue;
    ASSERT_FALSE(built.plans.empty()) << round;
    ++compared, ratios += static_cast<double>(built.plans[0].estimate.count()) / best;
  }
  EXPECT_GT(compared, rounds / 2);
  EXPECT_LE(ratios / compared, 1);
}

/// Equal layers, one a stage of a V: 1 MiB from F to I, and half of it from I to W.
Layers equal_layers(std::size_t count, std::array<std::int64_t, 3> ms) {
  Layers layers{.name = "equal", .digest = std::string(64, '0')};
  for (std::size_t l = 0; l < count; ++l) {
    Layer layer{.name = "l" + std::to_string(l)};
    layer.times = {{Nanoseconds{1'000'000 * ms[0]}, Nanoseconds{1'000'000 * ms[1]},
                    Nanoseconds{1'000'000 * ms[2]}, Nanoseconds{0}}};
    layer.saved = kMiB, layer.weight_saved = Bytes{kMiB.value / 2};
    layers.layers.push_back(layer);
    if (l > 0) layers.values.push_back({"v", LayerId{l - 1}, {LayerId{l}}, Bytes{0}, Bytes{0}});
  }
  return layers;
}

struct PublishedStep {
  std::size_t ranks, microbatches;
  std::array<std::int64_t, 3> ms;  // F, I, W
  std::int64_t transfer_ms, memory_kib, step_ms;
};

// V-Min, V-Half and ZB-V of the authors' generators (sail-sg/zero-bubble, zbv_greedy.py and zbv.py,
// commit 3fd87fd1), at the memory that their rows need by the planner's own rule.
TEST(TightOrders, AreNoSlowerThanPublishedOnesAtTheSameMemory) {
  const std::vector<PublishedStep> published{
      {4, 12, {10, 10, 10}, 0, 4616, 830},  {8, 16, {10, 10, 10}, 0, 10760, 1130},
      {8, 16, {14, 16, 9}, 1, 10760, 1617}, {4, 8, {10, 10, 10}, 0, 4616, 590},
      {4, 12, {14, 16, 9}, 1, 6664, 1067},  {4, 12, {14, 16, 9}, 1, 4616, 1361},
      {4, 12, {14, 16, 9}, 1, 8712, 997},
  };
  for (const PublishedStep& step : published) {
    const Layers layers = equal_layers(2 * step.ranks, step.ms);
    const Cluster cluster = uniform_cluster(step.ranks, {.memory = kGiB}, {1e12},
                                            Nanoseconds{1'000'000 * step.transfer_ms});
    Problem problem{.layers = layers, .cluster = cluster};
    problem.schedules = {{.family = "zbv_greedy",
                          .ranks = step.ranks,
                          .microbatches = step.microbatches,
                          .stages_per_rank = 2}};
    for (std::size_t r = 0; r < step.ranks; ++r)
      problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    problem.memory_limit.assign(step.ranks, Bytes{1024 * step.memory_kib});
    for (const bool given : {true, false}) {
      if (!given) problem.cuts.reset();
      if (given)
        problem.cuts = *equal_time_cuts(layers, placement_for(problem.schedules.front()), cluster);
      const Answer answer = search(problem, {.iterations = 300});
      ASSERT_FALSE(answer.plans.empty()) << step.step_ms;
      EXPECT_LE(answer.plans.front().estimate, Nanoseconds{1'000'000 * step.step_ms}) << given;
      EXPECT_TRUE(fits(answer.plans.front().peak_memory, problem.memory_limit));
    }
  }
}

// The families' own rows say how much memory there is: never slower than these, whatever is asked.
TEST(TightOrders, AreNoSlowerThanVMinAndVHalfAtTheirMemory) {
  for (std::size_t ranks = 2; ranks <= 8; ++ranks)
    for (const std::size_t rounds : {1, 2, 4})
      for (const char* family : {"v_min", "v_half"}) {
        const std::size_t microbatches = rounds * ranks;
        const Layers layers = equal_layers(2 * ranks, {14, 16, 9});
        const Cluster cluster =
            uniform_cluster(ranks, {.memory = kGiB}, {1e12}, Nanoseconds{1'000'000});
        Problem problem{.layers = layers, .cluster = cluster};
        ScheduleSpec spec{
            .family = family, .ranks = ranks, .microbatches = microbatches, .stages_per_rank = 2};
        const Placement placement = placement_for(spec);
        problem.cuts = *equal_time_cuts(layers, placement, cluster);
        const Prices prices = evaluate(layers, cluster, generate(spec), placement, *problem.cuts);
        for (std::size_t r = 0; r < ranks; ++r)
          problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
        problem.memory_limit = prices.peak_memory;
        spec.family = "zbv_greedy";
        problem.schedules = {spec};
        const Answer answer = search(problem, {.iterations = 10});
        ASSERT_FALSE(answer.plans.empty()) << family << " " << ranks << " " << microbatches;
        EXPECT_LE(answer.plans.front().estimate, prices.estimate)
            << family << " " << ranks << " " << microbatches;
      }
}

}  // namespace
}  // namespace pfeife
