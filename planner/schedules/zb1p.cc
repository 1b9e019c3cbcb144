// Interleaved zero bubble, as torch.distributed.pipelining has it (ScheduleInterleavedZeroBubble):
// interleaved 1F1B with the backward split as in ZB-H1 (Qi et al., ICLR 2024). G = microbatches a
// round.
//
//  1. Idle until the first forward can arrive: r cells.
//  2. Warm-up: w = min((V - 1) G + (D - 1 - r), N V) forwards, then D - 1 - r idle cells.
//  3. Steady state: one F, one I; from the I number r on, one W, the oldest.
//  4. Cool-down: one I and one W at a time; then the remaining W.
//  5. In unit steps, an idle cell goes before every F whose stage before has not finished it a step
//  earlier.
#include <algorithm>

#include "planner/schedules/microbatch_order.h"
#include "planner/schedules/rounds.h"

namespace pfeife {
namespace {

std::vector<Cell> zero_bubble_row(const ScheduleSpec& spec, std::size_t rank) {
  const std::size_t group = microbatches_a_round(spec), hops = spec.ranks - 1 - rank;
  const std::vector<Visit> forwards =
      forward_visits(spec.microbatches, spec.stages_per_rank, group);
  const std::vector<Visit> backwards =
      backward_visits(spec.microbatches, spec.stages_per_rank, group);
  std::vector<Cell> row;
  const auto add = [&](Action (*make)(StageId, MicrobatchId), const Visit& visit) {
    row.emplace_back(
        make(dealt_stage(visit.loop, rank, spec.ranks), MicrobatchId{visit.microbatch}));
  };

  const std::size_t all = forwards.size(),
                    warm = std::min((spec.stages_per_rank - 1) * group + hops, all);
  append_idle(row, static_cast<std::ptrdiff_t>(rank));
  for (std::size_t k = 0; k < warm; ++k) add(forward, forwards[k]);
  append_idle(row, static_cast<std::ptrdiff_t>(hops));
  std::size_t weights = 0;
  for (std::size_t k = 0; k < all; ++k) {
    if (warm + k < all) add(forward, forwards[warm + k]);
    add(backward_input, backwards[k]);
    if (k >= rank) add(backward_weight, backwards[weights++]);
  }
  while (weights < all) add(backward_weight, backwards[weights++]);
  return row;
}

/// Step 5. Every rank takes one cell a step, or an idle one if its next forward has to wait.
class Aligner {
 public:
  Aligner(const Schedule& schedule, std::size_t stages, std::size_t microbatches)
      : schedule_(schedule),
        microbatches_(microbatches),
        done_in_step_(stages * microbatches, kNever),
        next_(schedule.ranks(), 0) {
    result_.rows.resize(schedule.ranks());
  }

  Schedule align() {
    for (std::size_t step = 0; step_ranks(step); ++step) {
    }
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kNever = ~std::size_t{0};

  /// False once all rows are used up.
  bool step_ranks(std::size_t step) {
    bool any = false;
    for (std::size_t r = 0; r < schedule_.ranks(); ++r) {
      if (next_[r] == schedule_.rows[r].size()) continue;
      any = true;
      const Cell& cell = schedule_.rows[r][next_[r]];
      if (waits(cell, step)) {
        result_.rows[r].emplace_back();
        continue;
      }
      if (const auto* action = std::get_if<Action>(&cell); action && action->op == Op::Forward)
        done_in_step_[key(*action)] = step;
      result_.rows[r].push_back(cell);
      ++next_[r];
    }
    return any;
  }
  std::size_t key(const Action& a) const {
    return a.stage.index() * microbatches_ + a.microbatch->index();
  }
  bool waits(const Cell& cell, std::size_t step) const {
    const auto* action = std::get_if<Action>(&cell);
    if (!action || action->op != Op::Forward || action->stage.value == 0) return false;
    const std::size_t before = done_in_step_[key(*action) - microbatches_];
    return before == kNever || before == step;
  }

  const Schedule& schedule_;
  std::size_t microbatches_;
  std::vector<std::size_t> done_in_step_;  // [stage * microbatches + microbatch] of F
  std::vector<std::size_t> next_;          // [rank]
  Schedule result_;
};

Schedule zb1p_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r) schedule.rows.push_back(zero_bubble_row(spec, r));
  return Aligner(schedule, spec.stages(), spec.microbatches).align();
}

}  // namespace

Family zb1p() {
  return {.name = "zb1p",
          .rule = "interleaved 1F1B with the backward split; W fills the bubble",
          .refuse = refuse_uneven_rounds,
          .generate = zb1p_schedule,
          .placement = round_robin};
}

}  // namespace pfeife
