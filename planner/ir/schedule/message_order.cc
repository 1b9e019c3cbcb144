#include "planner/ir/schedule/message_order.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// The rows of a schedule, filled in the order in which tasks start.
class Rows {
 public:
  Rows(const Schedule& lowered, const DependencyGraph& graph)
      : lowered_(lowered), graph_(graph), next_(lowered.ranks(), 0) {
    for (const DurationSlot& slot : graph.slots)
      reduced_.insert(reduced_.end(), slot.stages.begin(), slot.stages.end());
    filled_.rows.resize(lowered.ranks());
    for (std::size_t r = 0; r < lowered.ranks(); ++r)
      filled_.rows[r].reserve(lowered.rows[r].size());
  }

  void start(const Task& task) {
    if (task.kind == TaskKind::Transfer) {
      append(task.rank, task.position);
      append(task.peer, task.peer_position);
    } else if (task.kind == TaskKind::Reduction) {
      for (const RankId rank : task.parties) reduce(rank, graph_.slots[task.slot].stages);
    } else {
      fill(task.rank.index(), task.position + 1);
    }
  }

  Schedule finished() {
    for (std::size_t r = 0; r < lowered_.ranks(); ++r) fill(r, lowered_.rows[r].size());
    return std::move(filled_);
  }

 private:
  void append(RankId rank, std::size_t position) {
    filled_.rows[rank.index()].push_back(lowered_.rows[rank.index()][position]);
  }
  static bool reduces(const Cell& cell, const std::vector<StageId>& stages) {
    const auto* action = std::get_if<Action>(&cell);
    return action != nullptr && action->op == Op::ReduceGrad &&
           std::ranges::find(stages, action->stage) != stages.end();
  }
  /// What a reduction has in a row.
  void reduce(RankId rank, const std::vector<StageId>& stages) {
    for (const Cell& cell : lowered_.rows[rank.index()])
      if (reduces(cell, stages)) filled_.rows[rank.index()].push_back(cell);
  }
  /// All before `end` but what is in several rows.
  void fill(std::size_t rank, std::size_t end) {
    for (; next_[rank] < end; ++next_[rank]) {
      const Cell& cell = lowered_.rows[rank][next_[rank]];
      const auto* action = std::get_if<Action>(&cell);
      const bool transfer = action != nullptr && is_transfer(action->op);
      if (!transfer && !reduces(cell, reduced_)) filled_.rows[rank].push_back(cell);
    }
  }

  const Schedule& lowered_;
  const DependencyGraph& graph_;
  std::vector<StageId> reduced_;   // by some reduction
  std::vector<std::size_t> next_;  // [rank] cell that is looked at next
  Schedule filled_;
};

class QueuedRun {
 public:
  QueuedRun(const DependencyGraph& graph, std::span<const Nanoseconds> lengths, Queues queues,
            MessageRule rule)
      : graph_(graph), lengths_(lengths), queues_(queues), rule_(rule), waits_(graph.size()) {
    PFEIFE_CHECK(lengths.size() == graph.size(), "a length of each task");
    begin_.assign(graph.size() + 1, 0);
    for (const Edge& edge : graph.edges) ++begin_[edge.from.index() + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<std::uint32_t> fill(begin_.begin(), begin_.end() - 1);
    next_.resize(graph.edges.size());
    for (std::uint32_t t = 0; t < graph.size(); ++t)
      for (const Edge& edge : graph.edges_into(TaskId{t})) {
        next_[fill[edge.from.index()]++] = t;
        ++waits_[t];
      }
    if (rule == MessageRule::LeastSlack) measure_ways();
    taken_.assign(graph.ranks * graph.ranks, false);
  }

  Schedule run(const Schedule& lowered) {
    Rows rows(lowered, graph_);
    for (std::uint32_t t = 0; t < graph_.size(); ++t)
      if (waits_[t] == 0) release(t);
    std::size_t started = 0;
    while (true) {
      started += start_waiting(rows);  // an action may need a message, no message needs the action
      started += start_actions(rows);
      if (ends_.empty()) break;
      now_ = std::get<0>(ends_.top());
      for (; !ends_.empty() && std::get<0>(ends_.top()) == now_; ends_.pop())
        end(std::get<1>(ends_.top()));
    }
    PFEIFE_CHECK(started == graph_.size(), "a schedule that cannot run");
    return rows.finished();
  }

 private:
  using Turn = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;  // the least goes first

  /// [task] the longest way from its begin to the end of the step.
  void measure_ways() {
    way_.assign(graph_.size(), 0);
    const std::vector<TaskId> order = task_order(graph_).order;
    for (auto t = order.rbegin(); t != order.rend(); ++t) {
      std::int64_t longest = 0;
      for (std::uint32_t i = begin_[t->index()]; i < begin_[t->index() + 1]; ++i)
        longest = std::max(longest, way_[next_[i]]);
      way_[t->index()] = longest + lengths_[t->index()].count();
    }
  }

  Turn turn(std::uint32_t task) const {
    const Action& sent = std::get<Action>(graph_.tasks[task].cell);
    const std::int64_t first = rule_ == MessageRule::LeastSlack ? -way_[task]
                               : rule_ == MessageRule::BackwardFirst
                                   ? sent.direction == Direction::Forward
                                   : 0;
    return {first, now_, task};
  }

  void release(std::uint32_t task) {
    if (graph_.tasks[task].kind == TaskKind::Transfer)
      waiting_.push_back(turn(task));
    else
      actions_.push_back(task);
  }

  void end(std::uint32_t task) {
    if (graph_.tasks[task].kind == TaskKind::Transfer) set_taken(graph_.tasks[task], false);
    for (std::uint32_t i = begin_[task]; i < begin_[task + 1]; ++i)
      if (--waits_[next_[i]] == 0) release(next_[i]);
  }

  void start(std::uint32_t task, Rows& rows) {
    rows.start(graph_.tasks[task]);
    ends_.push({now_ + lengths_[task].count(), task});
  }

  std::size_t start_actions(Rows& rows) {
    std::ranges::sort(actions_);
    for (const std::uint32_t task : actions_) start(task, rows);
    const std::size_t started = actions_.size();
    actions_.clear();
    return started;
  }

  std::size_t start_waiting(Rows& rows) {
    std::ranges::sort(waiting_);
    return std::erase_if(waiting_, [&](const Turn& turn) {
      const std::uint32_t number = std::get<2>(turn);
      if (is_taken(graph_.tasks[number])) return false;
      set_taken(graph_.tasks[number], true);
      start(number, rows);
      return true;
    });
  }

  /// The queues that a transfer is in: by numbers of ranks.
  template <class Visitor>
  void for_each_queue(const Task& task, Visitor&& visit) const {
    const std::size_t from = task.rank.index(), to = task.peer.index();
    if (queues_ == Queues::Edge) visit(from * graph_.ranks + to);
    if (queues_ == Queues::Pair) visit(std::min(from, to) * graph_.ranks + std::max(from, to));
    if (queues_ == Queues::Rank) visit(from), visit(to);
  }
  bool is_taken(const Task& task) const {
    bool taken = false;
    for_each_queue(task, [&](std::size_t queue) { taken = taken || taken_[queue]; });
    return taken;
  }
  void set_taken(const Task& task, bool taken) {
    for_each_queue(task, [&](std::size_t queue) { taken_[queue] = taken; });
  }

  const DependencyGraph& graph_;
  std::span<const Nanoseconds> lengths_;
  Queues queues_;
  MessageRule rule_;
  std::vector<std::uint32_t> waits_;         // [task] edges into it that still hold it
  std::vector<std::uint32_t> begin_, next_;  // tasks that wait for task t: next_[begin_[t] ...]
  std::vector<std::int64_t> way_;
  std::vector<bool> taken_;  // [queue]
  std::int64_t now_ = 0;
  std::vector<Turn> waiting_;           // transfers whose values are made
  std::vector<std::uint32_t> actions_;  // all else that may start now
  std::priority_queue<std::tuple<std::int64_t, std::uint32_t>,
                      std::vector<std::tuple<std::int64_t, std::uint32_t>>, std::greater<>>
      ends_;  // of what has started
};

}  // namespace

std::string to_string(MessageRule rule) {
  switch (rule) {
    case MessageRule::FirstReady:
      return "first ready";
    case MessageRule::LeastSlack:
      return "least slack";
    case MessageRule::BackwardFirst:
      return "backward first";
  }
  return "";
}

Schedule with_message_order(const Schedule& lowered, const StageGraph& stages,
                            const Placement& placement, std::span<const Nanoseconds> lengths,
                            Queues queues, MessageRule rule) {
  const DependencyGraph graph = dependencies(lowered, stages, placement, {});
  return QueuedRun(graph, lengths, queues, rule).run(lowered);
}

}  // namespace pfeife
