// Steps of equal length, as torch.distributed.pipelining counts them to compare schedules: in each
// step the ranks go in order and each does its next action if that is ready, else idles; then those
// that idle try once more. For tests.
#pragma once

#include <algorithm>
#include <map>
#include <set>

#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// Number of steps of a lowered chain schedule; overlaps are taken apart, state actions left out. 0
/// = it gets stuck.
class UnitSteps {
 public:
  explicit UnitSteps(const Schedule& schedule)
      : stages_(stage_count(schedule)), done_(schedule.ranks()) {
    for (const auto& row : schedule.rows) {
      std::vector<Action>& actions = todo_.emplace_back();
      for (const Cell& cell : row)
        for_each_action(cell, [&](const Action& a) {
          if (is_compute(a.op) || is_transfer(a.op)) actions.push_back(a);
        });
      for (const Action& a : actions) rank_of_[a.stage] = todo_.size() - 1;
    }
  }

  std::size_t count() {
    std::vector<std::size_t> next(todo_.size(), 0), log(todo_.size(), 0);
    const auto over = [&](std::size_t r) { return next[r] == todo_[r].size(); };
    while (true) {
      bool progress = false, unfinished = false;
      std::vector<bool> idles(todo_.size(), false);
      for (const bool second_pass : {false, true})
        for (std::size_t r = 0; r < todo_.size(); ++r) {
          if (over(r) || (second_pass && !idles[r])) continue;
          unfinished = true;
          if (!second_pass) ++log[r];
          const bool runs = ready(todo_[r][next[r]], r);
          if (runs) done_[r].insert(todo_[r][next[r]++]);
          if (!second_pass) idles[r] = !runs, progress |= runs;
        }
      if (!unfinished) return *std::ranges::max_element(log);
      if (!progress) return 0;
    }
  }

 private:
  bool did(std::size_t rank, const Action& action) const { return done_[rank].contains(action); }
  bool gradient(std::size_t rank, StageId stage, MicrobatchId m) const {
    return did(rank, backward(stage, m)) || did(rank, backward_input(stage, m));
  }
  bool ready(const Action& a, std::size_t rank) const {
    const MicrobatchId m = *a.microbatch;
    const StageId before{a.stage.value - 1}, after{a.stage.value + 1};
    switch (a.op) {
      case Op::Forward:
        return a.stage.value == 0 || did(rank, recv(a.stage, before, m, Direction::Forward)) ||
               did(rank, forward(before, m));
      case Op::Backward:
      case Op::BackwardInput:
        return a.stage.index() + 1 == stages_ ||
               did(rank, recv(a.stage, after, m, Direction::Backward)) || gradient(rank, after, m);
      case Op::Send:
        return a.direction == Direction::Forward ? did(rank, forward(a.stage, m))
                                                 : gradient(rank, a.stage, m);
      case Op::Recv:
        return did(rank_of_.at(*a.peer), send(*a.peer, a.stage, m, a.direction));
      default:
        return true;
    }
  }

  std::size_t stages_;
  std::vector<std::vector<Action>> todo_;  // [rank]
  std::vector<std::set<Action>> done_;     // [rank]
  std::map<StageId, std::size_t> rank_of_;
};

}  // namespace pfeife
