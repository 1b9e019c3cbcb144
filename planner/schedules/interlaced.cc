// The interlaced pipeline (Lin et al. 2024, nnScaler): 1F1B whose ranks stop together for the
// output layer of each microbatch, which they divide as tensor parallel ranks do. S and T stand
// side by side in every row, so that nothing runs beside their collectives.
//
// All ranks are at an S at the same time, so only two neighbours can be half a round apart: rank r
// does F before B in a round if D - r is even, B before F if it is odd. A microbatch then needs D /
// 2 rounds on its way forward and D on its way back, so 3 D / 2 are in flight:
//  1. rank r: F of 3 D / 2 - r microbatches (rounded down);
//  2. S, T of D - r microbatches: B of the first has not come yet;
//  3. B, S, T as often as the rank has more in flight than its rounds need;
//  4. F, B, S, T or B, F, S, T in turn;
//  5. B, S, T, then B, until all are done.
#include <algorithm>

#include "planner/schedules/family.h"

namespace pfeife {
namespace {

/// A row that is written action by action.
class InterlacedRow {
 public:
  InterlacedRow(std::size_t stage, std::size_t microbatches)
      : stage_(stage), microbatches_(static_cast<std::int64_t>(microbatches)) {}

  void forward() { next(forwards_, pfeife::forward); }
  void backward() { next(backwards_, pfeife::backward); }
  void head() {
    if (heads_ == microbatches_) return;
    cells_.emplace_back(head_share(stage_, MicrobatchId{heads_}));
    cells_.emplace_back(head_rest(stage_, MicrobatchId{heads_++}));
  }
  bool has_forwards() const { return forwards_ < microbatches_; }
  bool has_backwards() const { return backwards_ < microbatches_; }
  std::vector<Cell> cells() && { return std::move(cells_); }

 private:
  void next(std::int64_t& count, Action (*make)(StageId, MicrobatchId)) {
    if (count < microbatches_) cells_.emplace_back(make(stage_, MicrobatchId{count++}));
  }

  StageId stage_;
  std::int64_t microbatches_, forwards_ = 0, heads_ = 0, backwards_ = 0;
  std::vector<Cell> cells_;
};

std::vector<Cell> interlaced_row(std::size_t rank, const ScheduleSpec& spec) {
  const std::size_t ranks = spec.ranks, in_flight = ranks * 3 / 2 - rank, behind = ranks - rank;
  const std::size_t needed = behind + (behind - 1) / 2;
  const bool forward_first = behind % 2 == 0;
  InterlacedRow row(rank, spec.microbatches);
  for (std::size_t i = 0; i < in_flight; ++i) row.forward();
  for (std::size_t i = 0; i < behind; ++i) row.head();
  for (std::size_t i = needed; i < in_flight; ++i) row.backward(), row.head();
  while (row.has_forwards()) {
    if (forward_first) row.forward();
    row.backward();
    if (!forward_first) row.forward();
    row.head();
  }
  while (row.has_backwards()) row.backward(), row.head();
  return std::move(row).cells();
}

Schedule interlaced_schedule(const ScheduleSpec& spec) {
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r) schedule.rows.push_back(interlaced_row(r, spec));
  return schedule;
}

}  // namespace

Family interlaced() {
  return {.name = "interlaced",
          .rule = "1F1B, all ranks stop together for the output layer: 3 D / 2 in flight",
          .refuse = one_stage_a_rank,
          .generate = interlaced_schedule,
          .placement = round_robin,
          .certified = false,
          .head_barriers = 2};
}

}  // namespace pfeife
