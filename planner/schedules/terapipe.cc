// TeraPipe (Li et al. 2021): GPipe of slices, all forwards, then all backwards. As fast as Seq1F1B
// where slices take equally long, with all N S slices in flight.
#include "planner/schedules/family.h"
#include "planner/schedules/slice_order.h"

namespace pfeife {

static Schedule terapipe_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r)
    schedule.rows.push_back(sliced_row(spec, r, spec.microbatches * spec.slices, 1));
  return schedule;
}

Family terapipe() {
  return {.name = "terapipe",
          .rule = "GPipe of slices: all F, then all B, the slices of a microbatch descending",
          .refuse = one_stage_a_rank,
          .generate = terapipe_schedule,
          .placement = round_robin,
          .takes_slices = true};
}

}  // namespace pfeife
