// Breadth-first pipeline (Lamy-Poirier 2023): a rank finishes all microbatches of a stage before
// its next stage. Backward microbatches descend, as torch.distributed.pipelining has them.
//
//  1. Idle until the first forward can arrive: r cells.
//  2. All forwards, stage by stage.
//  3. Idle while the last microbatch goes to the last rank and back: 2 (D - 1 - r) cells.
//  4. All backwards, last stage first, last microbatch first.
#include "planner/schedules/family.h"
#include "planner/schedules/microbatch_order.h"

namespace pfeife {

static std::vector<Cell> breadth_first_row(const ScheduleSpec& spec, std::size_t rank) {
  std::vector<Cell> row;
  append_idle(row, static_cast<std::ptrdiff_t>(rank));
  for (std::size_t v = 0; v < spec.stages_per_rank; ++v)
    for (std::size_t b = 0; b < spec.microbatches; ++b)
      row.emplace_back(forward(dealt_stage(v, rank, spec.ranks), MicrobatchId{b}));
  append_idle(row, static_cast<std::ptrdiff_t>(2 * (spec.ranks - 1 - rank)));
  for (std::size_t v = spec.stages_per_rank; v-- > 0;)
    for (std::size_t b = spec.microbatches; b-- > 0;)
      row.emplace_back(backward(dealt_stage(v, rank, spec.ranks), MicrobatchId{b}));
  return row;
}

static Schedule looped_bfs_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r) schedule.rows.push_back(breadth_first_row(spec, r));
  return schedule;
}

Family looped_bfs() {
  return {.name = "looped_bfs",
          .rule = "breadth-first: all microbatches of a stage before the rank's next stage",
          .refuse = at_least_two_stages,
          .generate = looped_bfs_schedule,
          .placement = round_robin};
}

}  // namespace pfeife
