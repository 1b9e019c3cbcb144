// What PyTorch's allocator reserves must fit: the plan that is found beside all plans there are.
#include <gtest/gtest.h>

#include "planner/cost/allocator/played_ranks.h"
#include "planner/schedule_tool/certify.h"
#include "planner/search/choices/advice.h"
#include "tests/search/certified.h"

namespace pfeife {
namespace {

/// Some MiB each in place of bytes, so that segments of 2 and 20 MiB are coarse and fine.
constexpr std::int64_t kScale = 1 << 15;

Layers scaled(Layers layers) {
  const auto larger = [](Bytes& bytes) { bytes = bytes.value * kScale * Bytes{1}; };
  for (Layer& layer : layers.layers) {
    larger(layer.saved), larger(layer.weight_saved);
    larger(layer.temporary.forward), larger(layer.temporary.backward);
    larger(layer.temporary.input), larger(layer.temporary.weight);
  }
  for (LayerParameter& parameter : layers.parameters)
    larger(parameter.bytes), larger(parameter.gradient), larger(parameter.state);
  for (LayerValue& value : layers.values) {
    larger(value.bytes), larger(value.gradient_bytes);
    value.transfer_time = Nanoseconds{50};
  }
  for (LayerStorage& storage : layers.storages) larger(storage.bytes);
  return layers;
}

/// Random layers on devices that are nearly full.
Instance tight_instance(std::mt19937& random) {
  Instance instance = random_instance(random, 4);
  instance.layers = scaled(std::move(instance.layers));
  std::erase_if(instance.schedules,
                [](const ScheduleSpec& spec) { return family(spec.family).built_for_costs; });
  for (Bytes& limit : instance.memory_limit)
    limit = Bytes{static_cast<std::int64_t>(2500 + random() % 9000) * kScale};
  return instance;
}

struct Fastest {
  double allocated = std::numeric_limits<double>::infinity(), reserved = allocated;  // ns
};

/// The fastest plans whose allocated bytes fit, and whose reserved bytes do: all are tried.
Fastest fastest(const Problem& problem) {
  Fastest found;
  for (const ScheduleSpec& spec : problem.schedules) {
    const Placement placement = placement_for(spec);
    for_each_partition(problem.layers, spec.stages(), [&](const Partition& partition) {
      const Prices ready =
          evaluate(problem.layers, problem.cluster, generate(spec), placement, partition);
      const auto time = static_cast<double>(ready.estimate.count());
      for (const Prices& prices : {ready, received_late(ready, placement)}) {
        if (!fits(prices.peak_memory, problem.memory_limit)) continue;
        found.allocated = std::min(found.allocated, time);
        Plan plan;
        plan.partition = partition, plan.placement = placement;
        plan.schedule = prices.lowered, plan.peak_memory = prices.peak_memory;
        if (fits(reserved_memory(plan, problem.layers, *problem.allocator), problem.memory_limit))
          found.reserved = std::min(found.reserved, time);
      }
    });
  }
  return found;
}

double time_of(const Answer& answer) {
  return answer.plans.empty() ? std::numeric_limits<double>::infinity()
                              : static_cast<double>(answer.plans.front().estimate.count());
}

// The bound, and the proof that nothing fits, are of plans whose allocated bytes fit: these are
// more plans. What they claim is checked by the certificate's judge, who knows no allocator.
TEST(ReservedMemory, ThePlanIsTheFastestOfAllThatFit) {
  std::mt19937 random(7);
  int slower = 0, none = 0, fit = 0;
  for (int round = 0; round < 150; ++round) {
    const Instance instance = tight_instance(random);
    Problem problem = instance.problem();
    if (problem.schedules.empty()) continue;
    problem.allocator = AllocatorSettings{.expandable_segments = random() % 3 == 0};
    const Fastest best = fastest(problem);
    const Answer answer = certified_search(problem);
    ASSERT_EQ(time_of(answer), best.reserved) << round;
    if (answer.bound) {
      EXPECT_LE(static_cast<double>(answer.bound->time.count()), best.allocated) << round;
    }
    if (answer.infeasible && answer.infeasible->proven) {
      EXPECT_EQ(best.allocated, std::numeric_limits<double>::infinity()) << round;
    }
    if (answer.certificate) {
      EXPECT_EQ(tool::certify(*answer.certificate).refusal, "") << round;
    }
    for (const Priced& plan : answer.front) {
      Plan again{plan};
      again.schedule = plan.rows->lowered, again.peak_memory = plan.peak_memory;
      EXPECT_TRUE(
          fits(reserved_memory(again, problem.layers, *problem.allocator), problem.memory_limit))
          << round;
    }
    slower += best.reserved > best.allocated && !answer.plans.empty();
    none += best.reserved > best.allocated && answer.plans.empty();
    fit += best.reserved == best.allocated && !answer.plans.empty();
  }
  EXPECT_GT(slower, 10);
  EXPECT_GT(none, 3);
  EXPECT_GT(fit, 10);
}

// Named exactly where some plan fits with them, by trying all, and nothing does without.
TEST(ReservedMemory, ExpandableSegmentsAreNamedWhereTheyLetSomethingFit) {
  std::mt19937 random(7);
  int helps = 0, does_not = 0;
  for (int round = 0; round < 150; ++round) {
    const Instance instance = tight_instance(random);
    Problem problem = instance.problem();
    if (problem.schedules.empty()) continue;
    problem.allocator = AllocatorSettings{};
    if (fastest(problem).reserved < std::numeric_limits<double>::infinity()) continue;
    Surroundings nothing_else;
    nothing_else.schedules = [](std::size_t, std::size_t, bool) {
      return std::vector<ScheduleSpec>{};
    };
    nothing_else.devices = problem.device_of_rank;
    nothing_else.memory_limit = problem.memory_limit;
    const bool named =
        std::ranges::any_of(remedies(problem, nothing_else, {}), [](const Remedy& remedy) {
          return remedy.change.find("expandable_segments:True") != std::string::npos;
        });
    problem.allocator->expandable_segments = true;
    const bool fits = fastest(problem).reserved < std::numeric_limits<double>::infinity();
    EXPECT_EQ(named, fits) << round;
    ++(fits ? helps : does_not);
  }
  EXPECT_GT(helps, 1);
  EXPECT_GT(does_not, 3);
}

// What is said of all plans holds of each: every plan of small problems is replayed.
TEST(ReservedMemory, NoReplayedPlanReservesLessThanTheLeastSegments) {
  std::mt19937 random(5);
  int plans = 0, tight = 0;
  for (int round = 0; round < 120; ++round) {
    Instance instance = random_instance(random, 3);
    std::erase_if(instance.schedules,
                  [](const ScheduleSpec& spec) { return family(spec.family).built_for_costs; });
    if (round % 2 == 0) instance.layers = scaled(std::move(instance.layers));
    const Problem problem = instance.problem();
    const AllocatorSettings settings{
        .expandable_segments = random() % 3 == 0,
        .max_split_size = random() % 2 ? std::optional(64 * kMiB) : std::nullopt,
        .roundup_power2_divisions = random() % 2 ? 4 : 1};
    const LeastReserved least = least_reserved(problem.layers, settings);
    for (const ScheduleSpec& spec : problem.schedules) {
      const Placement placement = placement_for(spec);
      for_each_partition(problem.layers, spec.stages(), [&](const Partition& partition) {
        if (random() % 2 > 0) return;
        Plan plan;
        plan.partition = partition, plan.placement = placement;
        if (random() % 2 == 0) plan.activations.stages.assign(spec.stages(), true);
        const Prices prices = evaluate(problem.layers, problem.cluster, generate(spec), placement,
                                       partition, MemoryRule::Lifetimes, plan.activations);
        plan.schedule = prices.lowered, plan.peak_memory = prices.peak_memory;
        const std::vector<Bytes> reserved = reserved_memory(plan, problem.layers, settings);
        EXPECT_GE(std::ranges::min(reserved), least.of_each) << round;
        EXPECT_GE(std::ranges::max(reserved), least.of_fullest) << round;
        tight += std::ranges::min(reserved) == least.of_each;
        ++plans;
      });
    }
  }
  EXPECT_GT(plans, 500);
  EXPECT_GT(tight, 50);
}

TEST(ReservedMemory, LessThanTheLeastSegmentIsRefusedBeforeASearch) {
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 20; ++round) {
    Instance instance = random_instance(random, 3);  // of bytes: a segment of 2 MiB a rank
    for (Bytes& limit : instance.memory_limit) limit = 2 * kMiB - Bytes{1};
    instance.schedules.push_back({.family = "zb_greedy",
                                  .ranks = instance.memory_limit.size(),
                                  .microbatches = instance.schedules.front().microbatches});
    Problem problem = instance.problem();
    problem.allocator = AllocatorSettings{};
    const Answer answer = search(problem, {.iterations = 30});
    ASSERT_TRUE(answer.plans.empty() && answer.infeasible) << round;
    if (answer.candidates > 0) continue;  // some schedule has no cuts: the search says so
    EXPECT_TRUE(answer.infeasible->proven);
    EXPECT_EQ(answer.infeasible->needed, 2 * kMiB);
    EXPECT_EQ(answer.rejected.size(), problem.schedules.size());
    ++refused;
    for (Bytes& limit : problem.memory_limit) limit += Bytes{1};
    EXPECT_FALSE(search(problem, {.iterations = 30}).plans.empty()) << round;
  }
  EXPECT_GT(refused, 10);
}

// All but the last layer take two halves of 20 MiB segments while they run, and all but the first
// rank have 4 MiB: what is allocated fits with all cuts, and what is reserved with none.
TEST(ReservedMemory, CutsThatReserveTooMuchCountAsEffort) {
  const std::size_t count = 24, ranks = 6;
  Layers layers{.name = "halves", .digest = std::string(64, '0')};
  for (std::size_t l = 0; l < count; ++l) {
    Layer layer{.name = "l" + std::to_string(l)};
    layer.times = {{Nanoseconds{1000 + static_cast<std::int64_t>(l % 5) * 100}, Nanoseconds{1000},
                    Nanoseconds{1000}, Nanoseconds{0}}};
    layer.saved = Bytes{1024};
    if (l + 1 < count)
      layer.temporary.forward = layer.temporary.backward = Bytes{kMiB.value / 2 * 5};
    layers.layers.push_back(layer);
    if (l > 0)
      layers.values.push_back({"v", LayerId{l - 1}, {LayerId{l}}, Bytes{1024}, Bytes{1024}});
  }
  layers.storages.push_back({Bytes{1024}, {LayerId{0}}, {}, std::nullopt});
  const Cluster cluster = uniform_cluster(ranks, {.memory = kGiB}, {1e12}, Nanoseconds{0});
  Problem problem{.layers = layers, .cluster = cluster};
  problem.schedules = {{.family = "1f1b", .ranks = ranks, .microbatches = 8}};
  for (std::size_t r = 0; r < ranks; ++r) {
    problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    problem.memory_limit.push_back(r == 0 ? kGiB : 4 * kMiB);
  }
  problem.allocator = AllocatorSettings{};
  const Answer answer = search(problem, {.iterations = 2});
  EXPECT_TRUE(answer.plans.empty());
  EXPECT_LT(answer.candidates, 10000u) << "of 33649 cuts";
}

}  // namespace
}  // namespace pfeife
