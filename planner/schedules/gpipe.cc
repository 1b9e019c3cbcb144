// GPipe (Huang et al. 2019): all forwards, then all backwards, microbatches ascending in both.
#include "planner/schedules/family.h"
#include "planner/schedules/microbatch_order.h"

namespace pfeife {

static Schedule gpipe_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  schedule.rows.resize(spec.ranks);
  for (std::size_t r = 0; r < spec.ranks; ++r) {
    auto& row = schedule.rows[r];
    row.reserve(2 * spec.microbatches);
    for (std::size_t b = 0; b < spec.microbatches; ++b)
      row.emplace_back(forward(StageId{r}, MicrobatchId{b}));
    for (std::size_t b = 0; b < spec.microbatches; ++b)
      row.emplace_back(backward(StageId{r}, MicrobatchId{b}));
  }
  return schedule;
}

Family gpipe() {
  return {.name = "gpipe",
          .rule = "all F, then all B",
          .refuse = one_stage_a_rank,
          .generate = gpipe_schedule,
          .placement = round_robin};
}

}  // namespace pfeife
