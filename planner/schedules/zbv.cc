// ZB-V (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 6; as in
// torch.distributed.pipelining): two stages a rank in the shape of a V, backward split, as many
// activations as 1F1B.
//
// The order is made for N' = max(N, 2D - 1) microbatches; what lies beyond N becomes idle cells. a
// = the rank's stage on the way down (r), b = the one on the way up (2D - 1 - r). F, I, W count up
// by themselves within each stage.
//
//  1. r idle cells.
//  2. 2 (D - r) - 1 times: F of a.
//  3. r times: F of b, F of a.
//  4. D - r times: F, I, W of b.
//  5. Until both stages have done all forwards: F of a (while there are), I, W of a, F, I, W of b.
//  6. r times: I of a, I of b.
//  7. D - r times: I, W of a.
//  8. The remaining W of b, then of a.
#include <algorithm>

#include "planner/schedules/family.h"
#include "planner/schedules/microbatch_order.h"

namespace pfeife {
namespace {

/// One of the two stages of a rank: does its microbatches in order.
class Stage {
 public:
  Stage(std::size_t stage, std::size_t real, std::vector<Cell>& row)
      : stage_(StageId{stage}), real_(real), row_(row) {}

  void f() { add(forward, forwards++); }
  void i() { add(backward_input, inputs++); }
  void w() { add(backward_weight, weights++); }
  void iw() { i(), w(); }
  void fiw() { f(), i(), w(); }

  std::size_t forwards = 0, inputs = 0, weights = 0;

 private:
  void add(Action (*make)(StageId, MicrobatchId), std::size_t b) {
    row_.emplace_back(b < real_ ? Cell{make(stage_, MicrobatchId{b})} : Cell{});
  }
  StageId stage_;
  std::size_t real_;
  std::vector<Cell>& row_;
};

std::vector<Cell> v_row(std::size_t ranks, std::size_t microbatches, std::size_t rank) {
  const std::size_t all = std::max(microbatches, 2 * ranks - 1), hops = ranks - rank;
  std::vector<Cell> row;
  Stage a(rank, microbatches, row), b(2 * ranks - 1 - rank, microbatches, row);
  append_idle(row, static_cast<std::ptrdiff_t>(rank));
  for (std::size_t k = 0; k < 2 * hops - 1; ++k) a.f();
  for (std::size_t k = 0; k < rank; ++k) b.f(), a.f();
  for (std::size_t k = 0; k < hops; ++k) b.fiw();
  while (b.forwards < a.forwards || a.forwards < all) {
    if (a.forwards < all) a.f();
    a.iw();
    b.fiw();
  }
  for (std::size_t k = 0; k < rank; ++k) a.i(), b.i();
  for (std::size_t k = 0; k < hops; ++k) a.iw();
  while (b.weights < b.inputs) b.w();
  while (a.weights < a.inputs) a.w();
  return row;
}

Schedule zbv_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r)
    schedule.rows.push_back(v_row(spec.ranks, spec.microbatches, r));
  return schedule;
}

}  // namespace

Family zbv() {
  return {.name = "zbv",
          .rule = "two stages a rank in a V, backward split, activations of 1F1B",
          .refuse = exactly_two_stages,
          .generate = zbv_schedule,
          .placement = folded,
          .certified = false};
}

}  // namespace pfeife
