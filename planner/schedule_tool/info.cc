#include <set>

#include "planner/ir/basics/grid.h"
#include "planner/ir/trace/trace.h"
#include "planner/schedule_tool/argument_text.h"
#include "planner/schedule_tool/lifetimes.h"
#include "planner/schedule_tool/verbs.h"

namespace pfeife::tool {
namespace {

struct RowCounts {
  std::size_t cells = 0, idle = 0, compute = 0, overlaps = 0, sends = 0, state = 0;
};

RowCounts counts_of(const std::vector<Cell>& row) {
  RowCounts counts;
  for (const Cell& cell : row) {
    ++counts.cells;
    counts.idle += std::holds_alternative<std::monostate>(cell);
    counts.overlaps += std::holds_alternative<Overlap>(cell);
    for_each_action(cell, [&](const Action& a) {
      counts.compute += is_compute(a.op);
      counts.sends += a.op == Op::Send;
      counts.state += !is_compute(a.op) && !is_transfer(a.op) && !is_copy(a.op);
    });
  }
  return counts;
}

std::string stages_text(const std::vector<Cell>& row) {
  std::set<StageId> stages;
  for (const Cell& cell : row)
    for_each_action(cell, [&](const Action& a) { stages.insert(a.stage); });
  std::string text;
  for (const StageId s : stages) text += (text.empty() ? "" : " ") + to_string(s);
  return text;
}

}  // namespace

std::string microbatches_text(const Schedule& schedule) {
  const std::size_t slices = slice_count(schedule);
  return std::to_string(microbatch_count(schedule) / slices) + " microbatches" +
         (slices > 1 ? " of " + std::to_string(slices) + " slices" : "");
}

std::string info_text(const Schedule& schedule, Mode mode) {
  const Timing timing = time_schedule(schedule, {.mode = mode}, {}, {});
  std::string text = std::to_string(schedule.ranks()) + " ranks, " +
                     std::to_string(stage_count(schedule)) + " stages, " +
                     microbatches_text(schedule) + ", " +
                     (has_transfers(schedule) ? "with transfers" : "compute-only") + "\n";
  text += "bubble " + percent_text(bubble(timing.trace)) + " of a step of " +
          ms_text(milliseconds(step_time(timing.trace))) +
          " units (F = 1, B = 2, I = W = 1, free transfers)\n";
  std::vector<std::vector<std::string>> rows{{"rank", "stages", "cells", "idle", "compute",
                                              "overlaps", "sends", "state", "in flight", "I to W",
                                              "bubble"}};
  for (std::size_t r = 0; r < schedule.ranks(); ++r) {
    const RankId rank{r};
    const RowCounts counts = counts_of(schedule.rows[r]);
    const Holdings held = peak_holdings(schedule, rank);
    const auto number = [](std::size_t n) { return std::to_string(n); };
    rows.push_back({number(r), stages_text(schedule.rows[r]), number(counts.cells),
                    number(counts.idle), number(counts.compute), number(counts.overlaps),
                    number(counts.sends), number(counts.state), number(held.in_flight),
                    number(held.for_weight), percent_text(bubble(timing.trace, rank))});
  }
  return text + plain_grid(rows, true);
}

}  // namespace pfeife::tool
