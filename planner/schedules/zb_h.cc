// Zero bubble by hand, H1 and H2 (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024,
// sections 2.2 and 2.3): the backward is split into I, which the rank before waits for, and W,
// which fills what would be idle. k = 1 for H1, 2 for H2.
//
//  1. Warm-up: min(k (D - 1 - r), N) forwards.
//  2. For each microbatch: one forward while any are left; its I; from the I number k r on (counted
//  from 0), one W, the
//     oldest.
//  3. The remaining W.
//
// H1 holds no more activations than 1F1B; H2 holds about twice as many and, with N >= 2D - 1, has
// no bubble but the one at the end, which the optimizer step need not wait for.
#include <algorithm>

#include "planner/schedules/family.h"
#include "planner/schedules/microbatch_order.h"

namespace pfeife {

static std::vector<Cell> zero_bubble_row(std::size_t ranks, std::size_t microbatches,
                                         std::size_t rank, std::size_t k) {
  const StageId stage = StageId{rank};
  std::vector<Cell> row;
  row.reserve(3 * microbatches);
  std::size_t forwards = 0, weights = 0;
  const auto next_forward = [&] {
    if (forwards < microbatches) row.emplace_back(forward(stage, MicrobatchId{forwards++}));
  };
  const auto next_weight = [&] {
    row.emplace_back(backward_weight(stage, MicrobatchId{weights++}));
  };

  const std::size_t warm = std::min(k * (ranks - 1 - rank), microbatches);
  while (forwards < warm) next_forward();
  for (std::size_t b = 0; b < microbatches; ++b) {
    next_forward();
    row.emplace_back(backward_input(stage, MicrobatchId{b}));
    if (b >= k * rank) next_weight();
  }
  while (weights < microbatches) next_weight();
  return row;
}

template <std::size_t k>
static Schedule zb_h_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r)
    schedule.rows.push_back(zero_bubble_row(spec.ranks, spec.microbatches, r, k));
  return schedule;
}

Family zb_h1() {
  return {.name = "zb_h1",
          .rule = "1F1B with the backward split: W fills the bubble, memory as 1F1B",
          .refuse = one_stage_a_rank,
          .generate = zb_h_schedule<1>,
          .placement = round_robin};
}

Family zb_h2() {
  return {.name = "zb_h2",
          .rule = "as zb_h1 with twice the warm-up: almost no bubble, twice the activations",
          .refuse = one_stage_a_rank,
          .generate = zb_h_schedule<2>,
          .placement = round_robin};
}

}  // namespace pfeife
