// Interleaved 1F1B (Megatron-LM, Narayanan et al. 2021, section 2.2), with the rounds of
// torch.distributed.pipelining, which allow more N than multiples of D. G = microbatches a round.
//
//  1. Idle until the first forward can arrive: r cells.
//  2. Warm-up: w = min((V - 1) G + 2 (D - 1 - r), N V) forwards.
//  3. Idle until the first backward can come back: the first one is at unit step V D + 2 (D - 1 -
//  r).
//  4. Steady state: one forward, one backward.
//  5. Cool-down: the remaining backwards, each after an idle cell, in step with the ranks that
//  still alternate.
#include "planner/schedules/microbatch_order.h"
#include "planner/schedules/rounds.h"

namespace pfeife {

static std::vector<Cell> interleaved_row(const ScheduleSpec& spec, std::size_t rank) {
  const std::size_t group = microbatches_a_round(spec), hops = spec.ranks - 1 - rank;
  const std::vector<Visit> forwards =
      forward_visits(spec.microbatches, spec.stages_per_rank, group);
  const std::vector<Visit> backwards =
      backward_visits(spec.microbatches, spec.stages_per_rank, group);
  std::vector<Cell> row;
  const auto add_forward = [&](std::size_t k) {
    row.emplace_back(forward(dealt_stage(forwards[k].loop, rank, spec.ranks),
                             MicrobatchId{forwards[k].microbatch}));
  };
  const auto add_backward = [&](std::size_t k) {
    row.emplace_back(backward(dealt_stage(backwards[k].loop, rank, spec.ranks),
                              MicrobatchId{backwards[k].microbatch}));
  };

  const std::size_t all = forwards.size();
  const std::size_t warm = std::min((spec.stages_per_rank - 1) * group + 2 * hops, all);
  append_idle(row, static_cast<std::ptrdiff_t>(rank));
  for (std::size_t k = 0; k < warm; ++k) add_forward(k);
  const std::size_t first_backward = spec.stages_per_rank * spec.ranks + 2 * hops;
  append_idle(
      row, static_cast<std::ptrdiff_t>(first_backward) - static_cast<std::ptrdiff_t>(warm + rank));
  for (std::size_t k = warm; k < all; ++k) {
    add_forward(k);
    add_backward(k - warm);
  }
  for (std::size_t k = all - warm; k < all; ++k) {
    append_idle(row, 1);
    add_backward(k);
  }
  return row;
}

static Schedule interleaved_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r) schedule.rows.push_back(interleaved_row(spec, r));
  return schedule;
}

Family interleaved_1f1b() {
  return {
      .name = "interleaved_1f1b",
      .rule =
          "Megatron's: V stages a rank, rounds of about D microbatches, one F and one B in turn",
      .refuse = refuse_uneven_rounds,
      .generate = interleaved_schedule,
      .placement = round_robin};
}

}  // namespace pfeife
