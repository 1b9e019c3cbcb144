#include "runtime/execute/executor_overhead.h"

#include <algorithm>
#include <memory>

#include "planner/ir/schedule/lower.h"
#include "runtime/execute/executor.h"
#include "runtime/transport/in_process_transport.h"

namespace pfeife {
namespace {

/// All stages on one rank: F of every stage, then B, microbatch by microbatch.
Schedule schedule_of(std::size_t stages, std::size_t microbatches) {
  Schedule schedule{{{}}};
  for (std::size_t m = 0; m < microbatches; ++m) {
    const MicrobatchId id{m};
    for (std::size_t s = 0; s < stages; ++s) schedule.rows[0].push_back(forward(StageId{s}, id));
    for (std::size_t s = stages; s-- > 0;) schedule.rows[0].push_back(backward(StageId{s}, id));
  }
  return schedule;
}

}  // namespace

Nanoseconds executor_overhead(std::size_t stages, std::size_t microbatches, int steps) {
  const Nanoseconds unit{1000};
  const StageCosts costs = uniform_costs(stages, unit, unit, unit, unit);
  const Placement placement = round_robin(stages, 1);
  const Schedule schedule = lower(schedule_of(stages, microbatches), costs, placement);
  const DependencyGraph tasks = dependencies(schedule, stage_graph(costs), placement, Semantics{});
  std::vector<std::unique_ptr<EmptyStage>> owned;
  RankWork work;
  for (std::size_t s = 0; s < stages; ++s) {
    const StageId id{s};
    owned.push_back(std::make_unique<EmptyStage>(id, stages));
    work.stages[id] = owned.back().get();
  }
  work.optimizer_step = [](StageId) {};
  InProcessHub hub(1);
  const auto transport = hub.transport(RankId{0});
  RankExecutor executor(tasks, placement, RankId{0}, std::move(work), *transport);
  std::vector<Nanoseconds> times;
  std::size_t actions = 0;
  for (int step = 0; step < steps; ++step) {
    const Nanoseconds begin = now();
    actions = executor.run(static_cast<std::uint64_t>(step)).size();
    times.push_back(now() - begin);
  }
  std::ranges::sort(times);
  return times[times.size() / 2] / static_cast<std::int64_t>(actions);
}

}  // namespace pfeife
