// Time of the estimator a compute node, for its three forms, in one run: whole traces, one
// makespan, many at once. The counter "per node" is what the goals are stated in: ns a compute node
// of the schedule.
#include <benchmark/benchmark.h>

#include <random>

#include "planner/cost/estimate/estimator.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

/// looped, D = 8 ranks, N = 16 microbatches, V stages a rank, unequal stages.
struct Case {
  explicit Case(std::size_t stages_per_rank) {
    const ScheduleSpec spec{"looped", 8, 16, stages_per_rank, stages_per_rank == 1 ? 16U : 8U, {7}};
    placement = placement_for(spec);
    costs = uniform_costs(spec.stages(), Nanoseconds{1'000'000}, Nanoseconds{1'000'000},
                          Nanoseconds{1'000'000}, Nanoseconds{100'000});
    std::mt19937 random(1);
    for (StageCost& stage : costs.stages) stage.forward += Nanoseconds{random() % 100'000};
    graph = dependencies(lower(generate(spec), costs, placement), stage_graph(costs), placement,
                         Semantics{});
  }
  Placement placement;
  StageCosts costs;
  DependencyGraph graph;
};

void per_node(benchmark::State& state, std::size_t nodes, std::size_t runs = 1) {
  state.counters["per node"] = benchmark::Counter(
      static_cast<double>(nodes * runs),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["nodes"] = static_cast<double>(nodes);
}

void BM_Trace(benchmark::State& state) {
  const Case c(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(estimate(c.graph, c.costs));
  per_node(state, CompiledGraph(c.graph).compute_nodes());
}
BENCHMARK(BM_Trace)->Arg(1)->Arg(3);

void BM_Makespan(benchmark::State& state) {
  const Case c(static_cast<std::size_t>(state.range(0)));
  const CompiledGraph compiled(c.graph);
  std::vector<std::int64_t> durations;
  for (const Nanoseconds d : slot_durations(c.graph.slots, c.costs)) durations.push_back(d.count());
  for (auto _ : state) benchmark::DoNotOptimize(compiled.makespan(durations));
  per_node(state, compiled.compute_nodes());
}
BENCHMARK(BM_Makespan)->Arg(1)->Arg(2)->Arg(3);

void BM_Makespans(benchmark::State& state) {
  const Case c(static_cast<std::size_t>(state.range(0)));
  const CompiledGraph compiled(c.graph);
  constexpr std::size_t kCount = 256;
  std::vector<double> durations, out(kCount);
  std::mt19937 random(1);
  for (const Nanoseconds d : slot_durations(c.graph.slots, c.costs))
    for (std::size_t i = 0; i < kCount; ++i)
      durations.push_back(
          static_cast<double>(d.count() + static_cast<std::int64_t>(random() % 1000)));
  for (auto _ : state) {
    compiled.makespans(durations, kCount, out);
    benchmark::DoNotOptimize(out.data());
  }
  per_node(state, compiled.compute_nodes(), kCount);
}
BENCHMARK(BM_Makespans)->Arg(1)->Arg(2)->Arg(3);

void BM_BuildGraph(benchmark::State& state) {
  const ScheduleSpec spec{"looped", 8, 16, 3, 8U, {7}};
  const Case c(3);
  const Schedule lowered = lower(generate(spec), c.costs, c.placement);
  const StageGraph stages = stage_graph(c.costs);
  for (auto _ : state)
    benchmark::DoNotOptimize(dependencies(lowered, stages, c.placement, Semantics{}));
  per_node(state, CompiledGraph(c.graph).compute_nodes());
}
BENCHMARK(BM_BuildGraph);

}  // namespace
}  // namespace pfeife
