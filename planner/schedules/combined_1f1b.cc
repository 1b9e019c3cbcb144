// Combined 1F1B (Megatron-Core's overlap of the experts' communication, combined_1f1b.py): 1F1B and
// interleaved 1F1B with one more forward in the warm-up, and then a forward side by side with the
// backward of another microbatch, so that one computes while the other communicates. Megatron-Core
// has it without a pipeline and with several stages a rank; one stage a rank works in the same way.
// G = microbatches a round.
//
//  1. Idle until the first forward can arrive: r cells.
//  2. Warm-up: w = min((V - 1) G + 2 (D - 1 - r) + 1, N V) forwards.
//  3. Steady state: a forward side by side with a backward.
//  4. Cool-down: the remaining backwards.
#include <algorithm>

#include "planner/schedules/microbatch_order.h"
#include "planner/schedules/rounds.h"

namespace pfeife {

static std::vector<Cell> combined_row(const ScheduleSpec& spec, std::size_t rank) {
  const std::size_t group = microbatches_a_round(spec);
  const std::vector<Visit> forwards =
                               forward_visits(spec.microbatches, spec.stages_per_rank, group),
                           backwards =
                               backward_visits(spec.microbatches, spec.stages_per_rank, group);
  const auto stage = [&](const Visit& visit) { return dealt_stage(visit.loop, rank, spec.ranks); };
  const auto forward_of = [&](const Visit& visit) {
    return forward(stage(visit), MicrobatchId{visit.microbatch});
  };
  const auto backward_of = [&](const Visit& visit) {
    return backward(stage(visit), MicrobatchId{visit.microbatch});
  };
  const std::size_t all = forwards.size();
  const std::size_t warm =
      std::min((spec.stages_per_rank - 1) * group + 2 * (spec.ranks - 1 - rank) + 1, all);
  std::vector<Cell> row;
  append_idle(row, static_cast<std::ptrdiff_t>(rank));
  for (std::size_t k = 0; k < warm; ++k) row.emplace_back(forward_of(forwards[k]));
  for (std::size_t k = warm; k < all; ++k)
    row.emplace_back(Overlap{{forward_of(forwards[k]), backward_of(backwards[k - warm])}});
  for (std::size_t k = all - warm; k < all; ++k) row.emplace_back(backward_of(backwards[k]));
  return row;
}

static Schedule combined_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r) schedule.rows.push_back(combined_row(spec, r));
  return schedule;
}

static std::optional<Refusal> refuse_combined(const ScheduleSpec& spec) {
  if (spec.stages_per_rank == 1) return std::nullopt;
  return refuse_uneven_rounds(spec);
}

Family combined_1f1b() {
  return {.name = "combined_1f1b",
          .rule =
              "1F1B with one more warm-up forward, then each F side by side with the B of another "
              "microbatch; any V",
          .refuse = refuse_combined,
          .generate = combined_schedule,
          .placement = round_robin,
          .certified = false,
          .side_by_side = true,
          .only_by_name = true};
}

}  // namespace pfeife
