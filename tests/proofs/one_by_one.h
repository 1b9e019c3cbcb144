// The fastest of all orders of the actions of a tiny table, by trying them one by one.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>

#include "planner/cost/estimate/evaluate.h"
#include "planner/ir/schedule/lower.h"

namespace pfeife {

/// Every order of F, B, I and W of all stages, each judged in full: by the estimator, and by the
/// memory of its lowered rows. Starts never go back in time, which leaves out only copies of
/// orders.
class OneByOne {
 public:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  OneByOne(const StageCosts& costs, const Placement& placement, std::size_t microbatches,
           const std::vector<Bytes>& limit, std::size_t most_nodes = 200'000)
      : costs_(costs),
        placement_(placement),
        microbatches_(microbatches),
        most_nodes_(most_nodes),
        limit_(limit) {
    done_.resize(costs.stages.size());
    order_.rows.resize(placement.ranks());
    free_.resize(placement.ranks());
    for (const StageCost& stage : costs.stages) own_.push_back(stage.saved.value);
    for (const StageValue& value : costs.values) {
      if (value.saved_by_sender) own_[value.from.index()] -= value.bytes.value;
      for (std::size_t i = 0; i < value.to.size(); ++i)
        if (value.saved_by_receiver[i]) own_[value.to[i].index()] -= value.bytes.value;
    }
  }

  /// The fastest that takes less than `enough` ns and fits; kNone if there is none.
  std::int64_t best_below(std::int64_t enough) {
    best_ = enough, found_ = false;
    go_on(0, 2 * costs_.stages.size() * microbatches_);
    return found_ ? best_ : kNone;
  }
  bool gave_up() const { return nodes_ > most_nodes_; }

 private:
  struct Stage {
    std::vector<std::int64_t> forward, backward;  // ends
    std::vector<std::size_t> halves;              // microbatches between I and W
  };

  bool hopeless(std::int64_t now) const {
    std::vector<std::int64_t> left(free_.size()), held(free_.size());
    for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
      const StageCost& cost = costs_.stages[s];
      const std::size_t r = placement_.rank_of_stage[s].index();
      const Stage& of = done_[s];
      const auto n = static_cast<std::int64_t>(microbatches_);
      const auto f = static_cast<std::int64_t>(of.forward.size());
      const auto b = static_cast<std::int64_t>(of.backward.size());
      const auto halves = static_cast<std::int64_t>(of.halves.size());
      left[r] += (n - f) * cost.forward.count() + (n - b) * cost.backward().count() +
                 halves * cost.backward_weight.count() + cost.optimizer.count();
      held[r] += cost.fixed().value + (f - b) * std::max<std::int64_t>(0, own_[s]) +
                 halves * cost.weight_saved.value;
    }
    for (std::size_t r = 0; r < left.size(); ++r)
      if (free_[r] + left[r] >= best_ || held[r] > limit_[r].value) return true;
    return now >= best_;
  }

  void go_on(std::int64_t now, std::size_t left) {
    if (++nodes_ > most_nodes_ || hopeless(now)) return;
    bool halves = false;
    for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
      Stage& of = done_[s];
      halves = halves || !of.halves.empty();
      const StageId id{s};
      const std::size_t f = of.forward.size(), b = of.backward.size();
      if (f < microbatches_) with(now, forward(id, MicrobatchId{f}), left - 1, of.forward, f);
      if (b < f) {
        with(now, backward(id, MicrobatchId{b}), left - 1, of.backward, b);
        of.halves.push_back(b);
        with(now, backward_input(id, MicrobatchId{b}), left - 1, of.backward, b);
        of.halves.pop_back();
      }
      if (of.halves.empty()) continue;
      const std::size_t m = of.halves.front();
      of.halves.erase(of.halves.begin());
      std::vector<std::int64_t> nobody_waits;
      with(now, backward_weight(id, MicrobatchId{m}), left, nobody_waits, m);
      of.halves.insert(of.halves.begin(), m);
    }
    if (left == 0 && !halves) judge();
  }

  void with(std::int64_t now, const Action& action, std::size_t left,
            std::vector<std::int64_t>& ends, std::size_t m) {
    const std::size_t s = action.stage.index(), r = placement_.rank_of_stage[s].index();
    std::int64_t start = free_[r];
    for (const StagePair& pair : costs_.pairs) {
      const bool onward = action.op == Op::Forward && pair.to.index() == s;
      const bool back =
          makes_input_gradient(action.op) && pair.from.index() == s && pair.has_gradient;
      if (!onward && !back) continue;
      const auto& made =
          onward ? done_[pair.from.index()].forward : done_[pair.to.index()].backward;
      if (made.size() <= m) return;
      start = std::max(start, made[m] + (onward ? pair.forward_time : pair.backward_time).count());
    }
    if (start < now) return;
    const StageCost& cost = costs_.stages[s];
    const Nanoseconds time = action.op == Op::Forward         ? cost.forward
                             : action.op == Op::Backward      ? cost.backward()
                             : action.op == Op::BackwardInput ? cost.backward_input
                                                              : cost.backward_weight;
    const std::int64_t was_free = free_[r];
    free_[r] = start + time.count();
    ends.push_back(free_[r]);
    order_.rows[r].emplace_back(action);
    go_on(start, left);
    order_.rows[r].pop_back();
    ends.pop_back();
    free_[r] = was_free;
  }

  void judge() {
    const Prices plan = evaluate_lowered(costs_, lower(order_, costs_, placement_), placement_);
    if (plan.estimate.count() >= best_ ||
        !std::ranges::equal(plan.peak_memory, limit_, std::less_equal{}))
      return;
    best_ = plan.estimate.count(), found_ = true;
  }

  const StageCosts& costs_;
  const Placement& placement_;
  std::size_t microbatches_, most_nodes_, nodes_ = 0;
  const std::vector<Bytes>& limit_;
  std::vector<Stage> done_;
  std::vector<std::int64_t> own_, free_;
  Schedule order_;
  std::int64_t best_ = 0;
  bool found_ = false;
};

}  // namespace pfeife
