#include "planner/schedules/runnable.h"

#include "planner/ir/schedule/action_inputs.h"

namespace pfeife {
namespace {

class Executor {
 public:
  Executor(const Schedule& schedule, std::size_t stages, std::size_t microbatches)
      : schedule_(schedule),
        graph_(graph_of(schedule, stages)),
        edges_(graph_),
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
          stuck.push_back({RankId{r}, a});
        });
    return stuck;
  }

 private:
  std::size_t at(StageId stage, const Action& a) const { return at(stage, *a.microbatch); }
  std::size_t at(StageId stage, MicrobatchId m) const {
    return stage.index() * microbatches_ + m.index();
  }
  static StageGraph graph_of(const Schedule& schedule, std::size_t stages) {
    StageGraph graph = chain(stages);
    graph.head_barriers = head_barriers(schedule);
    return graph;
  }
  std::size_t& parts_done(Op collective, const Action& a) {
    std::vector<std::size_t>& done = parts_done_[collective_number(collective)];
    done.resize(microbatches_, 0);
    return done[a.microbatch->index()];
  }
  std::vector<bool>& computed(Direction way) {
    return way == Direction::Forward ? forward_ : backward_;
  }
  bool ready(const Cell& cell) {
    bool all = true;
    for_each_action(cell, [&](const Action& a) {
      if (operation(a.op).reads == Op::Forward) all = all && forward_[at(a.stage, a)];
      if (const auto before = slice_before(a))
        all = all && computed(*operation(a.op).passes)[at(a.stage, *before)];
      for_each_message_read(a, graph_, edges_,
                            [&](std::uint32_t, StageId source, Direction direction) {
                              all = all && computed(direction)[at(source, a)];
                            });
      if (const auto read = collective_read(a, graph_))
        all = all && parts_done(*read, a) == collective_parts(*read, graph_);
    });
    return all;
  }
  void finish(const Cell& cell) {
    for_each_action(cell, [&](const Action& a) {
      if (const auto way = operation(a.op).passes) computed(*way)[at(a.stage, a)] = true;
      if (const auto next = collective_made(a, graph_)) ++parts_done(*next, a);
    });
  }

  const Schedule& schedule_;
  const StageGraph graph_;
  const StageEdges edges_;
  std::size_t microbatches_;
  std::vector<bool> forward_, backward_;  // [stage * microbatches + microbatch] done
  std::array<std::vector<std::size_t>, kHeadCollectives.size()> parts_done_;  // [microbatch]
  std::vector<std::size_t> next_;                                             // [rank]
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
