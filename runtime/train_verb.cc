#include "runtime/train_verb.h"

#include "planner/io/atomic_file.h"
#include "planner/io/chrome_trace_reader.h"
#include "planner/ir/error.h"
#include "runtime/counting_allocator.h"
#include "runtime/measure.h"
#include "runtime/timed_run.h"

namespace pfeife {
namespace {

std::filesystem::path trace_file(const TrainRequest& request) {
  if (!request.timed->empty()) return *request.timed;
  if (request.what.plan.empty())
    throw ConfigError({"--timed"}, "without a plan, needs a trace: --timed=trace.json");
  return std::filesystem::path(request.what.plan).parent_path() / "trace.json";
}

int train_timed(const TrainRequest& request, const Executable& run) {
  const std::filesystem::path file = trace_file(request);
  const ActionTimes times = read_action_times(file, TraceSource::Estimated);
  const TimedPipeline timed{run.pipeline.tasks, run.pipeline.placement,
                            unit_costs(run.pipeline.graph, run.pipeline.split,
                                       run.pipeline.placement),
                            task_durations(run.pipeline.tasks, times.length, file.string())};
  return start_ranks(run.pipeline.ranks(), request.launch, [&](const RankSeat& seat) {
    const TimedMeasurement measured =
        measure_timed(timed, seat.rank, request.steps, seat.entering, seat.transport);
    if (seat.rank != RankId{0}) return RankAnswer{};
    return RankAnswer{to_string(measured, times.step), ""};
  });
}

}  // namespace

int train_verb(const TrainRequest& request) {
  count_allocations();
  const Executable run = read_executable(request.what);
  if (request.timed) return train_timed(request, run);
  return start_ranks(run.pipeline.ranks(), request.launch, [&](const RankSeat& seat) {
    const Measurement measured =
        measure_steps(run.pipeline, seat.rank, run.source, run.rank, request.steps,
                      /*count_memory=*/!request.launch.threads, seat.turns, seat.entering,
                      seat.transport);
    if (seat.rank != RankId{0}) return RankAnswer{};
    if (!request.out.empty()) write_file(request.out, measurement_text(measured));
    const double samples = static_cast<double>(run.pipeline.microbatches) *
                           static_cast<double>(run.pipeline.graph.microbatch_size);
    return RankAnswer{summary(measured, samples), ""};
  });
}

}  // namespace pfeife
