// SlimPipe (Li et al. 2025): interleaved 1F1B of slices, in groups of the smallest divisor of S
// that is no less than D. Rank r has S V + 2 (D - 1 - r) slices in flight, more than Seq1F1B where
// V is 1: between a slice's arrival and its need lies time for transfers. With slices that take
// equally long a step of N (F + B) + (D - 1) (F + B) / (S V).
#include <algorithm>

#include "planner/schedules/family.h"
#include "planner/schedules/slice_order.h"

namespace pfeife {

static std::optional<Refusal> refuse_too_few_slices(const ScheduleSpec& spec) {
  if (spec.stages_per_rank == 1 || spec.slices >= spec.ranks) return std::nullopt;
  return Refusal{"several stages a rank need as many slices as ranks, or more", {}, 1};
}

static Schedule slimpipe_schedule(const ScheduleSpec& spec) {
  std::size_t group = std::min(spec.slices, spec.ranks);
  while (spec.slices % group != 0) ++group;
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r)
    schedule.rows.push_back(sliced_row(
        spec, r, spec.slices * spec.stages_per_rank + 2 * (spec.ranks - 1 - r) - 1, group));
  return schedule;
}

Family slimpipe() {
  return {.name = "slimpipe",
          .rule = "interleaved 1F1B of slices: S V + 2 (D - 1 - r) of them in flight on rank r",
          .refuse = refuse_too_few_slices,
          .generate = slimpipe_schedule,
          .placement = round_robin,
          .takes_slices = true};
}

}  // namespace pfeife
