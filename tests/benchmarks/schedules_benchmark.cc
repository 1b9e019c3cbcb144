// Building, lowering and judging 100,000 actions: looped, D = 8 ranks, V = 2 stages a rank, N =
// 3125 microbatches.
#include <benchmark/benchmark.h>

#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

const ScheduleSpec kLarge{.family = "looped",
                          .ranks = 8,
                          .microbatches = 3125,
                          .stages_per_rank = 2,
                          .loop_batch = 8,
                          .prefetch = {3}};

StageCosts large_costs() {
  const Nanoseconds unit{1'000'000};
  return uniform_costs(kLarge.stages(), unit, unit, unit, Nanoseconds{50'000});
}

void BM_Generate(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(generate(kLarge));
}
BENCHMARK(BM_Generate)->Unit(benchmark::kMillisecond);

void BM_GenerateAndLower(benchmark::State& state) {
  const StageCosts costs = large_costs();
  const TransferOrder order = state.range(0) ? TransferOrder::Torch : TransferOrder::Ready;
  for (auto _ : state)
    benchmark::DoNotOptimize(
        lower(generate(kLarge), costs, placement_for(kLarge), {.transfers = order}));
}
BENCHMARK(BM_GenerateAndLower)->ArgName("torch")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_Validate(benchmark::State& state) {
  const StageCosts costs = large_costs();
  const Schedule lowered = lower(generate(kLarge), costs, placement_for(kLarge));
  const Requirements required{stage_graph(costs), kLarge.microbatches, true};
  for (auto _ : state) benchmark::DoNotOptimize(validate(lowered, required));
}
BENCHMARK(BM_Validate)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pfeife
