// Timed stages that really wait: `over_percent` is what executor, threads and the system's timer
// add to the estimated step, a point of each family on 4, 8 and 16 ranks. On an idle machine
// below 1.
#include <benchmark/benchmark.h>

#include "runtime/launch/rank_threads.h"
#include "tests/runtime/timed_points.h"

namespace pfeife {
namespace {

void Waits(benchmark::State& state, const ScheduleSpec& spec) {
  const testing::Point point = testing::point_of(spec);
  Nanoseconds step{0};
  for (auto _ : state)
    run_ranks(point.pipeline.placement.ranks(), at::kCPU, [&](RankId rank, Transport& transport) {
      const Trace own = testing::run_timed(point.pipeline, rank, transport);
      if (rank == RankId{0}) step = step_time(own);
    });
  state.counters["over_percent"] = 100 * (seconds(step) / seconds(point.predicted) - 1);
}

const int kRegistered = [] {
  for (const std::size_t ranks : {4, 8, 16})
    for (const ScheduleSpec& spec : testing::points(ranks))
      benchmark::RegisterBenchmark(("Waits/" + spec.family + "/" + std::to_string(ranks)).c_str(),
                                   [spec](benchmark::State& state) { Waits(state, spec); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime()
          ->Iterations(1);
  return 0;
}();

}  // namespace
}  // namespace pfeife
