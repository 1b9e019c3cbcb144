// Speed of the simulator: activities a second in one engine, small cases a second on all cores, and
// the estimator on the same graphs for comparison.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <thread>

#include "planner/cost/estimate/estimator.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "sim/engine.h"

namespace pfeife {
namespace {

/// 1F1B on the eight 3090, whose PCIe roots are shared.
struct Case {
  Case(std::size_t microbatches, Links links)
      : cluster(read_cluster(std::string(PFEIFE_SOURCE_DIR) + "/configs/clusters/3090_x8.yaml")) {
    const ScheduleSpec spec{.family = "1f1b", .ranks = 8, .microbatches = microbatches};
    placement = placement_for(spec);
    costs = uniform_costs(8, Nanoseconds{10'000'000}, Nanoseconds{10'000'000},
                          Nanoseconds{10'000'000}, Nanoseconds{0});
    for (StagePair& pair : costs.pairs) {
      pair.bytes = pair.gradient_bytes = Bytes{34'700'000};
      pair.forward_time = pair.backward_time = transfer_time(
          cluster.path(placement.device(pair.from), placement.device(pair.to)), pair.bytes);
    }
    graph = dependencies(lower(generate(spec), costs, placement), stage_graph(costs), placement,
                         {.queues = Queues::Pair, .links = links});
  }
  SimulationJob job() const {
    return {.name = "benchmark",
            .graph = &graph,
            .costs = &costs,
            .placement = &placement,
            .cluster = &cluster};
  }
  Cluster cluster;
  Placement placement;
  StageCosts costs;
  DependencyGraph graph;
};

/// Processor seconds of one run in a fresh process, platform included.
double seconds_in_a_process(const SimulationJob& job) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  if (fork() == 0) {
    const std::clock_t start = std::clock();
    EngineWork work;
    work.workload = workload_of(job);
    run_engine(work, [](std::uint64_t, const std::vector<std::int64_t>&) {});
    const double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    _exit(write(ends[1], &taken, sizeof taken) == sizeof taken ? 0 : 1);
  }
  double taken = 0;
  if (read(ends[0], &taken, sizeof taken) != sizeof taken) taken = 0;
  close(ends[0]);
  close(ends[1]);
  while (wait(nullptr) < 0 && errno == EINTR) {
  }
  return taken;
}

void engine(benchmark::State& state, Links links) {
  const Case c(static_cast<std::size_t>(state.range(0)), links);
  const SimulationJob job = c.job();
  for (auto _ : state) state.SetIterationTime(seconds_in_a_process(job));
  state.counters["activities"] = static_cast<double>(c.graph.size());
  state.counters["activities/s"] = benchmark::Counter(
      static_cast<double>(c.graph.size()), benchmark::Counter::kIsIterationInvariantRate);
}
void BM_SharedLinks(benchmark::State& state) { engine(state, Links::Shared); }
void BM_DelayLinks(benchmark::State& state) { engine(state, Links::Delay); }
BENCHMARK(BM_SharedLinks)
    ->Arg(16)
    ->Arg(256)
    ->Arg(4096)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_DelayLinks)
    ->Arg(16)
    ->Arg(256)
    ->Arg(4096)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void BM_EstimatorOnTheSameGraph(benchmark::State& state) {
  const Case c(static_cast<std::size_t>(state.range(0)), Links::Delay);
  for (auto _ : state) benchmark::DoNotOptimize(estimate(c.graph, c.costs));
}
BENCHMARK(BM_EstimatorOnTheSameGraph)->Arg(16)->Arg(256)->Unit(benchmark::kMillisecond);

/// 1,000 cases of 8 ranks and 16 microbatches, all cores.
void BM_ThousandCases(benchmark::State& state) {
  const Case c(16, Links::Shared);
  const std::vector<SimulationJob> jobs(1000, c.job());
  for (auto _ : state) benchmark::DoNotOptimize(simulate_all(jobs));
  state.counters["cores"] = std::thread::hardware_concurrency();
}
BENCHMARK(BM_ThousandCases)->Unit(benchmark::kSecond)->Iterations(1)->UseRealTime();

/// One case, 1,000 repetitions with jitter.
void BM_ThousandRepetitions(benchmark::State& state) {
  const Case c(16, Links::Shared);
  SimulationJob job = c.job();
  job.jitter.cv = 0.02;
  job.repetitions = 1000;
  for (auto _ : state) benchmark::DoNotOptimize(simulate_all({&job, 1}));
}
BENCHMARK(BM_ThousandRepetitions)->Unit(benchmark::kSecond)->Iterations(1)->UseRealTime();

}  // namespace
}  // namespace pfeife
