// The best step of all orders of the actions, by trying them: of any stages, whatever waits for
// what.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// F, I and W of every stage in any order that the ranks may have; transfers never contend, the
/// optimizer steps of a rank come last. Reductions are left out: shared parameters must not be.
class AllOrders {
 public:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  AllOrders(const StageCosts& costs, const Placement& placement, std::size_t microbatches)
      : costs_(costs),
        placement_(placement),
        microbatches_(microbatches),
        free_(placement.ranks(), 0),
        left_(placement.ranks(), 0),
        step_(placement.ranks(), 0) {
    for (auto& done : done_) done.resize(costs.stages.size());
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
      const std::size_t r = placement.rank_of_stage[s].index();
      for (std::size_t op = 0; op < 3; ++op)
        left_[r] += static_cast<std::int64_t>(microbatches) * time(op, s);
      step_[r] += costs.stages[s].optimizer.count();
    }
    find_tails();
  }

  /// The best step (ns) if it is below `enough`, else kNone; `unfinished()` if it gave up.
  std::int64_t best_below(std::int64_t enough) {
    best_ = enough, found_ = false, nodes_ = 0;
    go_on(0, costs_.stages.size() * microbatches_ * 3);
    return found_ ? best_ : kNone;
  }
  bool unfinished() const { return nodes_ > kMostNodes; }
  /// Rows of the best, compute-only.
  const Schedule& order() const { return order_; }

 private:
  static constexpr std::size_t kMostNodes = 3'000'000;

  std::int64_t time(std::size_t op, std::size_t s) const {
    const StageCost& of = costs_.stages[s];
    return (op == 0 ? of.forward : op == 1 ? of.backward_input : of.backward_weight).count();
  }
  /// tail_[op][s]: what surely follows from the start of an action on.
  void find_tails() {
    const std::size_t stages = costs_.stages.size();
    for (auto& tail : tail_) tail.assign(stages, 0);
    for (std::size_t s = 0; s < stages; ++s) tail_[2][s] = time(2, s) + step(s);
    for (std::size_t s = 0; s < stages; ++s) {
      tail_[1][s] = tail_[2][s];
      for (const StagePair& pair : costs_.pairs)
        if (pair.to.index() == s && pair.has_gradient)
          tail_[1][s] =
              std::max(tail_[1][s], pair.backward_time.count() + tail_[1][pair.from.index()]);
      tail_[1][s] += time(1, s);
    }
    for (std::size_t s = stages; s-- > 0;) {
      tail_[0][s] = tail_[1][s];
      for (const StagePair& pair : costs_.pairs)
        if (pair.from.index() == s)
          tail_[0][s] =
              std::max(tail_[0][s], pair.forward_time.count() + tail_[0][pair.to.index()]);
      tail_[0][s] += time(0, s);
    }
  }
  std::int64_t step(std::size_t s) const { return step_[placement_.rank_of_stage[s].index()]; }

  /// When all is there that microbatch m of the action needs; kNone = not yet scheduled.
  std::int64_t ready(std::size_t op, std::size_t s, std::size_t m) const {
    std::int64_t at = 0;
    const auto wait = [&](std::size_t of, std::size_t stage, Nanoseconds sent) {
      if (at != kNone)
        at = m < done_[of][stage].size() ? std::max(at, done_[of][stage][m] + sent.count()) : kNone;
    };
    if (op > 0) wait(op - 1, s, Nanoseconds{0});
    for (const StagePair& pair : costs_.pairs) {
      if (op == 0 && pair.to.index() == s) wait(0, pair.from.index(), pair.forward_time);
      if (op == 1 && pair.from.index() == s && pair.has_gradient)
        wait(1, pair.to.index(), pair.backward_time);
    }
    return at;
  }

  /// Starts never go back in time. Microbatches are alike, so that each stage has them in turn.
  void go_on(std::int64_t now, std::size_t actions) {
    if (++nodes_ > kMostNodes) return;
    if (actions == 0) return note();
    for (std::size_t r = 0; r < free_.size(); ++r)
      if ((left_[r] > 0 ? std::max(free_[r], now) : free_[r]) + left_[r] + step_[r] >= best_)
        return;
    struct Next {
      std::int64_t start;
      std::size_t op, stage;
    };
    std::vector<Next> next;
    for (std::size_t op = 0; op < 3; ++op)
      for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
        const std::size_t m = done_[op][s].size();
        if (m == microbatches_) continue;
        const std::int64_t needs = ready(op, s, m);
        if (needs == kNone) continue;
        const std::int64_t start = std::max(needs, free_[placement_.rank_of_stage[s].index()]);
        if (std::max(start, now) + tail_[op][s] >= best_) return;
        if (start >= now) next.push_back({start, op, s});
      }
    for (const auto& [start, op, s] : next) {
      const std::size_t r = placement_.rank_of_stage[s].index();
      const std::int64_t took = time(op, s), was_free = free_[r];
      done_[op][s].push_back(start + took), free_[r] = start + took, left_[r] -= took;
      path_.push_back({op, s});
      go_on(start, actions - 1);
      path_.pop_back();
      done_[op][s].pop_back(), free_[r] = was_free, left_[r] += took;
    }
  }

  void note() {
    std::int64_t end = 0;
    for (std::size_t r = 0; r < free_.size(); ++r) end = std::max(end, free_[r] + step_[r]);
    if (end >= best_) return;
    best_ = end, found_ = true;
    order_.rows.assign(free_.size(), {});
    std::array<std::vector<std::int64_t>, 3> next;
    for (auto& of : next) of.assign(costs_.stages.size(), 0);
    for (const auto& [op, s] : path_) {
      const StageId stage{s};
      const MicrobatchId m{next[op][s]++};
      order_.rows[placement_.rank_of_stage[s].index()].push_back(op == 0 ? forward(stage, m)
                                                                 : op == 1
                                                                     ? backward_input(stage, m)
                                                                     : backward_weight(stage, m));
    }
  }

  const StageCosts& costs_;
  const Placement& placement_;
  std::size_t microbatches_, nodes_ = 0;
  std::int64_t best_ = 0;
  bool found_ = false;
  std::vector<std::int64_t> free_, left_, step_;                // [rank]
  std::array<std::vector<std::vector<std::int64_t>>, 3> done_;  // [F, I, W][stage] ends
  std::array<std::vector<std::int64_t>, 3> tail_;
  std::vector<std::pair<std::size_t, std::size_t>> path_;
  Schedule order_;
};

}  // namespace pfeife
