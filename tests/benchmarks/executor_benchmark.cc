// What the executor costs an action besides the stages' own work: stages that do nothing, all on
// one rank, half of the actions handing a value on. The counter `ns_an_action` is the figure to
// keep below 10,000.
#include <benchmark/benchmark.h>

#include "runtime/execute/executor_overhead.h"

namespace pfeife {
namespace {

void BookkeepingOfAnAction(benchmark::State& state) {
  const auto stages = static_cast<std::size_t>(state.range(0)),
             microbatches = static_cast<std::size_t>(state.range(1));
  Nanoseconds action{0};
  for (auto _ : state) action = executor_overhead(stages, microbatches, 20);
  state.counters["ns_an_action"] = static_cast<double>(action.count());
}
BENCHMARK(BookkeepingOfAnAction)->Args({2, 8})->Args({8, 16})->Args({8, 128});

}  // namespace
}  // namespace pfeife
