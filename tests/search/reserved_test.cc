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

}  // namespace
}  // namespace pfeife
