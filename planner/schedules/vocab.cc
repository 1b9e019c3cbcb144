// Vocabulary parallelism (Yeung et al. 2024, "Balancing Pipeline Parallelism with Vocabulary
// Parallelism"): 1F1B whose ranks share the output layer, each a part of the words. Between the F
// of a microbatch on the last stage and its B lie S and T on every rank, and one (vocab_2) or two
// (vocab_1) barriers where all ranks wait for one another.
//
// The order is that of a building block on a clock of F = 1, B = 2 and S, T in no time, k barriers:
//  1. Rank r does F of microbatches 0 to D - r + k - 1 as early as 1F1B would: at r + m.
//  2. From there on one microbatch every three units: F at r + k + 3 (m - k), so that the last rank
//     ends F of m at k + D + 3 (m - k); B at D + k + 3 m + 2 (D - 1 - r), on the last rank three
//     units after the end of F for each barrier. The first k microbatches pass their barriers in
//     warm-up.
//  3. S of m: on each rank between two of its F and B, at least one unit behind the last F of m and
//     before what waits for it, which is the time that the collectives have. Those of the first k:
//     right before the rank's F of D - r + m.
//  4. T of m: right before S of m + 1. With two barriers B waits for it, with one it may be late.
// In flight on rank r, from F to B: D - r + k, where 1F1B has D - r.
#include <algorithm>
#include <tuple>

#include "planner/schedules/family.h"

namespace pfeife {
namespace {

/// An action at its time on the clock; T, S, then F and B where the time is the same.
struct VocabAction {
  std::int64_t time = 0;
  int kind = 0;
  Action action;
};

class VocabBlock {
 public:
  VocabBlock(const ScheduleSpec& spec, std::int64_t barriers)
      : ranks_(static_cast<std::int64_t>(spec.ranks)),
        microbatches_(static_cast<std::int64_t>(spec.microbatches)),
        barriers_(barriers) {}

  std::vector<Cell> row(std::int64_t rank) const {
    std::vector<VocabAction> actions;
    const StageId stage{rank};
    for (std::int64_t m = 0; m < microbatches_; ++m) {
      const MicrobatchId id{m};
      actions.push_back({forward_time(rank, m), 2, forward(stage, id)});
      actions.push_back({share_time(rank, m), 1, head_share(stage, id)});
      actions.push_back({share_time(rank, m + 1), 0, head_rest(stage, id)});
      actions.push_back({backward_time(rank, m), 2, backward(stage, id)});
    }
    std::ranges::sort(actions, {}, [](const VocabAction& t) {
      return std::tuple{t.time, t.kind, t.action.op, t.action.microbatch};
    });
    std::vector<Cell> row;
    for (const VocabAction& timed : actions) row.emplace_back(timed.action);
    return row;
  }

 private:
  static constexpr std::int64_t kPeriod = 3;

  std::int64_t forward_time(std::int64_t rank, std::int64_t m) const {
    const bool early = m < ranks_ - rank + barriers_;
    return early ? rank + m : rank + barriers_ + kPeriod * (m - barriers_);
  }
  std::int64_t backward_time(std::int64_t rank, std::int64_t m) const {
    return ranks_ + barriers_ + kPeriod * m + 2 * (ranks_ - 1 - rank);
  }
  /// The beginning or the end of an F of the rank that is one or two units behind the last F of m.
  std::int64_t share_time(std::int64_t rank, std::int64_t m) const {
    if (m < barriers_) return ranks_ + m;
    const std::int64_t window = ranks_ + barriers_ + kPeriod * (m - barriers_);
    const std::int64_t phase = (rank + barriers_ + kPeriod * ranks_ - window % kPeriod) % kPeriod;
    return window + (phase == 2 ? 2 : 1);  // F at 0: its end; at 1 or 2: its beginning
  }

  std::int64_t ranks_, microbatches_, barriers_;
};

Schedule vocab_schedule(const ScheduleSpec& spec, std::int64_t barriers) {
  const VocabBlock block(spec, barriers);
  Schedule schedule;
  for (std::size_t r = 0; r < spec.ranks; ++r)
    schedule.rows.push_back(block.row(static_cast<std::int64_t>(r)));
  return schedule;
}

Schedule with_two_barriers(const ScheduleSpec& spec) { return vocab_schedule(spec, 2); }
Schedule with_one_barrier(const ScheduleSpec& spec) { return vocab_schedule(spec, 1); }

}  // namespace

Family vocab_1() {
  return {.name = "vocab_1",
          .rule = "1F1B, all ranks share the output layer: S and T before B, D - r + 2 in flight",
          .refuse = one_stage_a_rank,
          .generate = with_two_barriers,
          .placement = round_robin,
          .certified = false,
          .head_barriers = 2};
}

Family vocab_2() {
  return {.name = "vocab_2",
          .rule = "1F1B, all ranks share the output layer: S before B, D - r + 1 in flight",
          .refuse = one_stage_a_rank,
          .generate = with_one_barrier,
          .placement = round_robin,
          .certified = false,
          .head_barriers = 1};
}

}  // namespace pfeife
