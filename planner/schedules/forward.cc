// Forward only (serving, evaluation, prefill): rows of F alone. Groups of `loop batch`
// microbatches, D of them unless said otherwise, pass all stages of a rank, the first stage first.
//
//  V = 1: in order, what is left of 1F1B or GPipe without backwards: ends at (N + D - 1) F.
//  loop batch D: what is left of interleaved 1F1B. A microbatch never waits: its latency is D F, F
//  the time of a rank's whole share of it, and N microbatches end at (N + (D - 1) / V) F if D
//  divides N.
//  loop batch N: what is left of the breadth-first pipeline: it ends at the same time, but a
//  microbatch waits between the stages of a rank until the group is through.
//
// No point is cyclic: all ranks make the same visits in the same order, and F waits for the same
// visit of the rank before, or on rank 0 for an earlier visit of the last one.
#include "planner/schedules/family.h"
#include "planner/schedules/microbatch_order.h"

namespace pfeife {

static Schedule forward_schedule(const ScheduleSpec& spec) {
  const std::vector<Visit> visits =
      forward_visits(spec.microbatches, spec.stages_per_rank, spec.loop_batch.value_or(spec.ranks));
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r) {
    auto& row = schedule.rows.emplace_back();
    row.reserve(visits.size());
    for (const Visit& visit : visits)
      row.emplace_back(
          forward(dealt_stage(visit.loop, r, spec.ranks), MicrobatchId{visit.microbatch}));
  }
  return schedule;
}

Family forward_only() {
  return {.name = "forward",
          .rule =
              "F alone (training.mode: forward): V stages a rank, groups of `loop batch` "
              "microbatches, D unless said",
          .refuse = [](const ScheduleSpec&) -> std::optional<Refusal> { return std::nullopt; },
          .generate = forward_schedule,
          .placement = round_robin,
          .takes_loop_batch = true,
          .mode = Mode::Forward};
}

}  // namespace pfeife
