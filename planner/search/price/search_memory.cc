#include "planner/search/price/search_memory.h"

#include <algorithm>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/trace/trace.h"
#include "planner/schedules/families.h"
#include "planner/search/price/cut_costs.h"
#include "planner/search/price/program.h"

namespace pfeife {
namespace {

// One forward pass and its backward have at most F, I and W, and a message each way.
constexpr std::size_t kComputes = 3, kMessages = 2;
constexpr std::size_t kTasks = kComputes + kMessages;
constexpr std::size_t kCells = kComputes + 2 * kMessages;  // SEND and RECV
constexpr std::size_t kEdges = 2 * kTasks;                 // the one before, and what it reads
constexpr std::size_t kSamples = 2 * kCells;               // of memory: during and after a cell

std::size_t passes(const ScheduleSpec& schedule) {
  return schedule.stages() * schedule.microbatches;
}
Bytes of_passes(const ScheduleSpec& schedule, std::size_t bytes) {
  return Bytes{static_cast<std::int64_t>(passes(schedule) * bytes)};
}

/// F and B, or F, I and W of each pass.
std::size_t computes(const ScheduleSpec& schedule) {
  const ScheduleSpec small{.family = schedule.family,
                           .ranks = 2,
                           .microbatches = 4,
                           .stages_per_rank = schedule.stages_per_rank};
  if (refusal(small)) return kComputes;
  bool split = false;
  for (const auto& row : generate(small).rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& a) { split = split || a.op == Op::BackwardWeight; });
  return split ? kComputes : kComputes - 1;
}

}  // namespace

Bytes search_memory(const Layers& layers, std::span<const ScheduleSpec> schedules) {
  std::size_t positions = 2;  // before the first layer, after the last
  for (std::size_t l = 0; l + 1 < layers.size(); ++l)
    positions += layers.layers[l].no_cut_after.empty() ? 1 : 0;
  Bytes sum{0};
  std::string family;
  std::size_t of_family = 0;
  for (const ScheduleSpec& schedule : schedules) {
    if (schedule.stages() >= positions) continue;
    if (schedule.family != family) family = schedule.family, of_family = computes(schedule);
    sum += Program::memory(of_family * passes(schedule)) +
           CutCosts::memory(schedule.stages(), positions);
  }
  return sum;
}

std::size_t tasks_of(const ScheduleSpec& schedule) { return kTasks * passes(schedule); }

Bytes judging_memory(const ScheduleSpec& schedule) {
  return of_passes(schedule, (kComputes + kCells) * sizeof(Cell)) + graph_memory(schedule);
}

Bytes plan_memory(const ScheduleSpec& schedule) {
  return of_passes(
      schedule, kCells * sizeof(Cell) + kTasks * sizeof(Event) + kSamples * sizeof(MemorySample));
}

Bytes graph_memory(const ScheduleSpec& schedule) {
  return of_passes(schedule, kTasks * sizeof(Task) + kEdges * sizeof(Edge));
}

}  // namespace pfeife
