#include "planner/schedules/runnable.h"

namespace pfeife {
namespace {

class Executor {
 public:
  Executor(const Schedule& schedule, std::size_t stages, std::size_t microbatches)
      : schedule_(schedule),
        stages_(stages),
        microbatches_(microbatches),
        forward_(stages * microbatches),
        backward_(stages * microbatches),
        next_(schedule.ranks()) {}

  std::vector<StuckCell> run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t r = 0; r < schedule_.ranks(); ++r)
        while (next_[r] < schedule_.rows[r].size() && ready(schedule_.rows[r][next_[r]])) {
          finish(schedule_.rows[r][next_[r]++]);
          progress = true;
        }
    }
    std::vector<StuckCell> stuck;
    for (std::size_t r = 0; r < schedule_.ranks(); ++r)
      if (next_[r] < schedule_.rows[r].size())
        for_each_action(schedule_.rows[r][next_[r]], [&](const Action& a) {
          stuck.push_back({RankId{static_cast<std::int64_t>(r)}, a});
        });
    return stuck;
  }

 private:
  std::size_t at(const Action& a, std::ptrdiff_t away = 0) const {
    return (a.stage.index() + static_cast<std::size_t>(away)) * microbatches_ +
           a.microbatch->index();
  }
  bool ready(const Cell& cell) const {
    bool all = true;
    for_each_action(cell, [&](const Action& a) {
      if (a.op == Op::Forward && a.stage.index() > 0) all = all && forward_[at(a, -1)];
      if (a.op == Op::Backward || a.op == Op::BackwardInput)
        all = all && forward_[at(a)] && (a.stage.index() + 1 == stages_ || backward_[at(a, 1)]);
    });
    return all;
  }
  void finish(const Cell& cell) {
    for_each_action(cell, [&](const Action& a) {
      if (a.op == Op::Forward) forward_[at(a)] = true;
      if (a.op == Op::Backward || a.op == Op::BackwardInput) backward_[at(a)] = true;
    });
  }

  const Schedule& schedule_;
  std::size_t stages_, microbatches_;
  std::vector<bool> forward_, backward_;  // [stage * microbatches + microbatch] done
  std::vector<std::size_t> next_;         // [rank]
};

}  // namespace

std::vector<StuckCell> stuck_cells(const Schedule& schedule, std::size_t stages,
                                   std::size_t microbatches) {
  return Executor(schedule, stages, microbatches).run();
}

std::string describe(const std::vector<StuckCell>& stuck) {
  std::string text;
  for (const StuckCell& cell : stuck)
    text += (text.empty() ? "rank " : ", rank ") + to_string(cell.rank) + " waits at " +
            to_string(cell.action);
  return text;
}

}  // namespace pfeife
