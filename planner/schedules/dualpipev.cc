// DualPipeV (DeepSeek-V3's DualPipe cut in half, Sea AI Lab 2025; as in
// torch.distributed.pipelining): two stages a rank in the shape of a V, forward of one side by side
// with backward of the other. a = stage r, b = stage 2D - 1 - r.
//
//  1. 2 (D - 1 - r) times: F of a.
//  2. r + 1 times: F of a, F of b.
//  3. D - 1 - r times: I, W, F of b.
//  4. N - 2D + r + 1 times: [F of a | B of b], [F of b | B of a] side by side; the very first pair
//  of the last rank one
//     after the other, which shortens the bubble.
//  5. D - 1 - r times: B of b, [F of b | B of a].
//  6. r + 1 times: backward of b, then of a; the second half of these 2 (r + 1) are I only.
//  7. D - 1 - r times: the oldest open W, I of a.
//  8. r + 1 times: the oldest open W.
#include <deque>

#include "planner/schedules/family.h"
#include "planner/schedules/microbatch_order.h"

namespace pfeife {
namespace {

class Row {
 public:
  Row(std::size_t ranks, std::size_t microbatches, std::size_t rank)
      : ranks_(ranks),
        microbatches_(microbatches),
        rank_(rank),
        a_{StageId{rank}},
        b_{StageId{2 * ranks - 1 - rank}} {}

  std::vector<Cell> build() {
    const std::size_t hops = ranks_ - 1 - rank_, depth = rank_ + 1;
    repeat(2 * hops, [&](std::size_t) { row_.emplace_back(f(a_)); });
    repeat(depth, [&](std::size_t) { row_.emplace_back(f(a_)), row_.emplace_back(f(b_)); });
    repeat(hops, [&](std::size_t) {
      row_.emplace_back(i(b_)), row_.emplace_back(w()), row_.emplace_back(f(b_));
    });
    repeat(microbatches_ + depth - 2 * ranks_, [&](std::size_t k) {
      if (k == 0 && hops == 0)
        row_.emplace_back(f(a_)), row_.emplace_back(full(b_));
      else
        side_by_side(a_, b_);
      side_by_side(b_, a_);
    });
    repeat(hops, [&](std::size_t) { row_.emplace_back(full(b_)), side_by_side(b_, a_); });
    repeat(2 * depth, [&](std::size_t k) {
      Stage& stage = k % 2 == 0 ? b_ : a_;
      row_.emplace_back(k < depth ? full(stage) : i(stage));
    });
    repeat(hops, [&](std::size_t) { row_.emplace_back(w()), row_.emplace_back(i(a_)); });
    repeat(depth, [&](std::size_t) { row_.emplace_back(w()); });
    return std::move(row_);
  }

 private:
  struct Stage {
    StageId id;
    std::size_t forwards = 0, backwards = 0;
  };
  template <class Step>
  static void repeat(std::size_t times, Step&& step) {
    for (std::size_t k = 0; k < times; ++k) step(k);
  }

  static Action f(Stage& stage) { return forward(stage.id, MicrobatchId{stage.forwards++}); }
  static Action full(Stage& stage) { return backward(stage.id, MicrobatchId{stage.backwards++}); }
  Action i(Stage& stage) {
    open_.push_back(backward_weight(stage.id, MicrobatchId{stage.backwards}));
    return backward_input(stage.id, MicrobatchId{stage.backwards++});
  }
  Action w() {
    const Action oldest = open_.front();
    open_.pop_front();
    return oldest;
  }
  void side_by_side(Stage& onward, Stage& back) {
    const Action first = f(onward);
    row_.emplace_back(Overlap{{first, full(back)}});
  }

  std::size_t ranks_, microbatches_, rank_;
  Stage a_, b_;
  std::deque<Action> open_;  // W of every I that has none yet
  std::vector<Cell> row_;
};

Schedule dualpipev_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r)
    schedule.rows.push_back(Row(spec.ranks, spec.microbatches, r).build());
  return schedule;
}

std::optional<Refusal> too_few_microbatches(const ScheduleSpec& spec) {
  if (auto refused = exactly_two_stages(spec)) return refused;
  if (spec.microbatches >= 2 * spec.ranks) return std::nullopt;
  return Refusal{"it needs at least 2 D = " + std::to_string(2 * spec.ranks) + " microbatches",
                 2 * spec.ranks,
                 {}};
}

}  // namespace

Family dualpipev() {
  return {.name = "dualpipev",
          .rule =
              "two stages a rank in a V, forward of one side by side with backward of the other; N "
              ">= 2D",
          .refuse = too_few_microbatches,
          .generate = dualpipev_schedule,
          .placement = folded,
          .certified = false,
          .side_by_side = true};
}

}  // namespace pfeife
