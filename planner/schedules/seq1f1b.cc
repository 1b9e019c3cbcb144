// Seq1F1B (Sun et al. 2024): 1F1B of slices. Rank r does D - 2 - r + S forwards, then one forward
// and one backward in turn: the first backward, of the last slice, finds the whole microbatch. With
// slices that take equally long a step of N (F + B) + (D - 1) (F + B) / S, and S + D - 1 - r slices
// in flight on rank r. S = 1 is 1F1B.
#include <algorithm>

#include "planner/schedules/family.h"
#include "planner/schedules/slice_order.h"

namespace pfeife {

static Schedule seq1f1b_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r)
    schedule.rows.push_back(sliced_row(
        spec, r, spec.ranks + spec.slices - std::min(r + 2, spec.ranks + spec.slices), 1));
  return schedule;
}

Family seq1f1b() {
  return {.name = "seq1f1b",
          .rule = "1F1B of slices: D - 2 - r + S forwards on rank r, then one F and one B in turn",
          .refuse = one_stage_a_rank,
          .generate = seq1f1b_schedule,
          .placement = round_robin,
          .takes_slices = true};
}

}  // namespace pfeife
