#include "planner/ir/trace/observed_run.h"

#include <algorithm>
#include <map>

#include "planner/ir/basics/error.h"
#include "planner/ir/trace/trace_waits.h"

namespace pfeife {
namespace {

constexpr std::int64_t kUnbounded = std::int64_t{1} << 61;

std::int64_t floor_half(std::int64_t value) { return value >> 1; }

constexpr std::size_t kNone = ~std::size_t{0};

/// What the graph says of a task besides its edges.
struct Around {
  std::size_t before = kNone;  ///< of a compute or optimizer task: the one before it on its rank
  std::size_t maker = kNone;   ///< of a transfer: whose value it is
  std::size_t reader = kNone;  ///< of a transfer: the first to read it
  std::size_t reads = 0;       ///< of a compute task: transfers
};

std::vector<Around> surroundings(const DependencyGraph& graph) {
  std::vector<Around> around(graph.size());
  std::vector<std::size_t> last(graph.ranks, kNone);
  for (std::size_t t = 0; t < graph.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer)
      around[t].before = std::exchange(last[task.rank.index()], t);
    for (const Edge& edge : graph.edges_into(TaskId{t})) {
      if (edge.kind != EdgeKind::Data) continue;
      const std::size_t from = edge.from.index();
      if (task.kind == TaskKind::Transfer) around[t].maker = from;
      if (graph.tasks[from].kind != TaskKind::Transfer) continue;
      if (around[from].reader == kNone) around[from].reader = t;
      ++around[t].reads;
    }
  }
  return around;
}

Nanoseconds latest_end(const DependencyGraph& graph, const Trace& trace, TaskId task) {
  Nanoseconds latest{0};
  for (const Edge& edge : graph.edges_into(task))
    latest = std::max(latest, trace.events[edge.from.index()].end);
  return latest;
}

class Assembly {
 public:
  Assembly(const DependencyGraph& graph, const Trace& predicted,
           std::span<const ObservedRank> ranks)
      : graph_(graph), predicted_(predicted), around_(surroundings(graph)), seen_(graph.size()) {
    find_ranks(ranks);
    for (const ObservedRank* rank : ranks_) find_tasks(*rank);
    count_steps();
    for (const ObservedRank* rank : ranks_) place_optimizers(*rank);
    check_order();
  }

  ObservedRun run() {
    ObservedRun run{.optimizer = optimizer_};
    run.clocks = align(0, steps_, run.drifting);
    for (std::size_t k = 0; k < steps_; ++k) {
      std::vector<ClockOffset> clocks = run.clocks;
      if (run.drifting) {
        bool again = false;
        clocks = align(k, k + 1, again);
        for (std::size_t c = 0; c < clocks.size(); ++c)
          if (k == 0 || clocks[c].error > run.clocks[c].error) run.clocks[c] = clocks[c];
      }
      run.watched.emplace_back(graph_.size());
      run.steps.push_back(step(k, clocks, run.watched.back()));
    }
    return run;
  }

 private:
  const std::string& file_of(RankId rank) const { return ranks_[rank.index()]->file; }
  [[noreturn]] void refuse(RankId rank, const std::string& message) const {
    throw ConfigError({file_of(rank)}, "rank " + to_string(rank) + " " + message);
  }

  void find_ranks(std::span<const ObservedRank> ranks) {
    ranks_.resize(graph_.ranks);
    for (const ObservedRank& rank : ranks) {
      if (rank.rank.value < 0 || rank.rank.index() >= graph_.ranks)
        throw ConfigError({rank.file}, stream_all("is of rank ", rank.rank.value, ", the plan has ",
                                                  graph_.ranks, " ranks"));
      const ObservedRank*& known = ranks_[rank.rank.index()];
      if (known != nullptr)
        throw ConfigError({rank.file},
                          "is of rank " + to_string(rank.rank) + ", as is " + known->file);
      known = &rank;
      clocks_ = std::max(clocks_, rank.clock + 1);
    }
    for (std::size_t r = 0; r < graph_.ranks; ++r)
      if (ranks_[r] == nullptr)
        throw ConfigError({}, stream_all("no trace is of rank ", r, "; the plan has ", graph_.ranks,
                                         " ranks, and each needs its trace"));
  }

  /// The stage that is alone on the rank.
  StageId only_stage(RankId rank) const {
    std::optional<StageId> only;
    for (const Task& task : graph_.tasks)
      if (task.kind == TaskKind::Compute && task.rank == rank)
        for_each_action(task.cell, [&](const Action& action) {
          if (only && *only != action.stage)
            refuse(rank,
                   "has several stages in the plan, its trace names none: expected names as "
                   "\"0F0\"");
          only = action.stage;
        });
    PFEIFE_CHECK(only, "a rank without actions");
    return *only;
  }

  void find_tasks(const ObservedRank& rank) {
    std::map<std::string, std::size_t> tasks;  // by text: a cell alone knows no number of slices
    for (std::size_t t = 0; t < graph_.size(); ++t)
      if (graph_.tasks[t].rank == rank.rank) tasks[to_string(graph_.tasks[t].cell)] = t;
    for (ObservedAction action : rank.actions) {
      auto* single = std::get_if<Action>(&action.cell);
      if (single != nullptr && single->stage.value < 0) {
        if (single->op == Op::OptimizerStep) continue;  // see place_optimizers()
        single->stage = only_stage(rank.rank);
      }
      const auto task = tasks.find(to_string(action.cell));
      if (task != tasks.end()) {
        action.cell = graph_.tasks[task->second].cell;
        seen_[task->second].push_back(action);
      } else if (single == nullptr || is_compute(single->op)) {
        refuse(rank.rank, "ran " + to_string(action.cell) +
                              ", which the plan does not have there: these are traces of another "
                              "plan");
      }
    }
    for (const auto& [cell, task] : tasks)
      std::ranges::stable_sort(seen_[task], {}, &ObservedAction::start);
  }

  void count_steps() {
    const std::size_t first = 0;  // a compute task of rank 0
    steps_ = seen_[first].size();
    for (std::size_t t = 0; t < graph_.size(); ++t) {
      const Task& task = graph_.tasks[t];
      if (task.kind == TaskKind::Compute && seen_[t].size() != std::max<std::size_t>(steps_, 1))
        refuse(task.rank, stream_all("ran ", to_string(task.cell), " ", seen_[t].size(),
                                     " times in the trace, ", to_string(graph_.tasks[first].cell),
                                     " of rank 0 ran ", steps_,
                                     " times; record the same whole steps on every rank"));
      if (task.kind != TaskKind::Compute && seen_[t].size() != steps_) seen_[t].clear();
    }
  }

  /// Optimizer steps without a stage: one for all stages of the rank, or one for each.
  void place_optimizers(const ObservedRank& rank) {
    std::vector<std::size_t> tasks;
    for (std::size_t t = 0; t < graph_.size(); ++t)
      if (graph_.tasks[t].kind == TaskKind::Optimizer && graph_.tasks[t].rank == rank.rank)
        tasks.push_back(t);
    std::vector<ObservedAction> steps;
    for (const ObservedAction& action : rank.actions)
      if (const auto* single = std::get_if<Action>(&action.cell);
          single != nullptr && single->op == Op::OptimizerStep && single->stage.value < 0)
        steps.push_back(action);
    std::ranges::stable_sort(steps, {}, &ObservedAction::start);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      auto& seen = seen_[tasks[i]];
      if (steps.size() == steps_ * tasks.size())
        for (std::size_t k = 0; k < steps_; ++k) seen.push_back(steps[k * tasks.size() + i]);
      else if (steps.size() == steps_)
        for (ObservedAction step : steps) {
          if (i > 0) step.start = step.end, step.busy = Nanoseconds{0};
          seen.push_back(step);
        }
      optimizer_ = optimizer_ && seen.size() == steps_;
    }
  }

  /// Actions of a rank begin in the plan's order; where they touch they are told apart.
  void check_order() {
    for (std::size_t t = 0; t < graph_.size(); ++t) {
      const std::size_t before = around_[t].before;
      if (before == kNone || seen_[t].empty() || seen_[before].empty()) continue;
      for (std::size_t k = 0; k < steps_; ++k) {
        const Task& task = graph_.tasks[t];
        ObservedAction& earlier = seen_[before][k];
        if (seen_[t][k].start < earlier.start)
          refuse(task.rank, "ran " + to_string(task.cell) + " before " +
                                to_string(graph_.tasks[before].cell) +
                                ", the plan has it behind: this is another schedule");
        earlier.end = std::min(earlier.end, seen_[t][k].start);
      }
    }
  }

  /// When task `t` had what it reads: an overlap may begin before what its later parts wait for.
  Nanoseconds had_all(std::size_t t, std::size_t k) const {
    const bool parts = std::holds_alternative<Overlap>(graph_.tasks[t].cell);
    return parts ? seen_[t][k].end : seen_[t][k].start;
  }

  std::size_t clock_of(RankId rank) const { return ranks_[rank.index()]->clock; }

  /// When transfer `t` of step k was posted, by its sender's clock.
  Nanoseconds posted(std::size_t t, std::size_t k) const {
    const Nanoseconds computed = seen_[around_[t].maker][k].end;
    return seen_[t].empty() ? computed : std::max(computed, seen_[t][k].start);
  }

  std::vector<ClockOffset> align(std::size_t first, std::size_t last, bool& drifting) const {
    std::vector<ClockBound> messages;
    for (std::size_t t = 0; t < graph_.size(); ++t) {
      const Task& task = graph_.tasks[t];
      const auto [before, maker, reader, reads] = around_[t];
      if (task.kind != TaskKind::Transfer || maker == kNone || reader == kNone) continue;
      for (std::size_t k = first; k < last; ++k)
        messages.push_back(
            {clock_of(task.rank), clock_of(task.peer), posted(t, k), had_all(reader, k)});
    }
    std::optional<std::size_t> unbounded;
    auto offsets = clock_offsets(clocks_, messages, unbounded);
    if (offsets) return *offsets;
    for (const ObservedRank* rank : ranks_)
      if (unbounded == rank->clock)
        refuse(rank->rank,
               "and rank 0 do not send to each other both ways, so that their clocks "
               "cannot be compared");
    if (last - first > 1) return drifting = true, std::vector<ClockOffset>(clocks_);
    throw ConfigError({}, stream_all("in step ", first,
                                     " of the traces messages arrive before they "
                                     "are sent, whatever the clocks: they are not of one run, or "
                                     "not of the same steps"));
  }

  Trace step(std::size_t k, const std::vector<ClockOffset>& clocks,
             std::vector<bool>& watched) const {
    Trace trace{.source = TraceSource::Measured, .ranks = graph_.ranks};
    trace.events = predicted_.events;
    const auto shift = [&](RankId rank) { return clocks[clock_of(rank)].offset; };
    Nanoseconds origin = Nanoseconds::max();
    for (std::size_t t = 0; t < graph_.size(); ++t)
      if (graph_.tasks[t].kind == TaskKind::Compute)
        origin = std::min(origin, seen_[t][k].start + shift(graph_.tasks[t].rank));
    for (const TaskId id : task_order(graph_).order) {
      const std::size_t t = id.index();
      Event& event = trace.events[t];
      const Task& task = graph_.tasks[t];
      event.launch = Nanoseconds{0};
      if (task.kind == TaskKind::Transfer) {
        watched[t] =
            time_transfer(t, k, event, trace, shift(task.rank) - origin, shift(task.peer) - origin);
      } else if (seen_[t].empty() || (task.kind == TaskKind::Optimizer && !optimizer_)) {
        event.start = event.end = latest_end(graph_, trace, id);
      } else {
        const ObservedAction& action = seen_[t][k];
        event.start = action.start + shift(task.rank) - origin;
        event.end = action.end + shift(task.rank) - origin;
        event.launch = std::max(Nanoseconds{0}, event.end - event.start - action.busy);
      }
    }
    explain_waits(graph_, trace);
    return trace;
  }

  /// `sender`, `receiver`: what is added to times of their clocks. Was it watched?
  bool time_transfer(std::size_t t, std::size_t k, Event& event, const Trace& trace,
                     Nanoseconds sender, Nanoseconds receiver) const {
    const Nanoseconds expected = predicted_.events[t].end - predicted_.events[t].start;
    const auto [before, maker, reader, reads] = around_[t];
    event.start = maker == kNone ? latest_end(graph_, trace, TaskId{t}) : posted(t, k) + sender;
    event.end = event.start + expected;
    if (!seen_[t].empty() && seen_[t][k].arrives) {
      event.start = seen_[t][k].start + sender;
      event.end = seen_[t][k].end + sender;
      return true;
    }
    if (reader == kNone) return false;
    const std::size_t busy = around_[reader].before;
    const Nanoseconds read = had_all(reader, k) + receiver;
    if (std::holds_alternative<Overlap>(graph_.tasks[reader].cell)) {
      event.end = std::clamp(event.end, event.start, std::max(event.start, read));
      return false;
    }
    if (busy == kNone || seen_[busy][k].end + receiver < event.end)
      event.end = std::max(event.start, read);
    return around_[reader].reads == 1 &&
           (busy == kNone || seen_[busy][k].end + receiver <= event.start);
  }

  const DependencyGraph& graph_;
  const Trace& predicted_;
  std::vector<Around> around_;
  std::vector<const ObservedRank*> ranks_;         // [rank]
  std::vector<std::vector<ObservedAction>> seen_;  // [task][step]; empty = not observed
  std::size_t clocks_ = 0, steps_ = 0;
  bool optimizer_ = true;
};

}  // namespace

std::optional<std::vector<ClockOffset>> clock_offsets(std::size_t clocks,
                                                      std::span<const ClockBound> messages,
                                                      std::optional<std::size_t>& unbounded) {
  // most[a][b]: x[b] - x[a] is at most that
  std::vector<std::vector<std::int64_t>> most(clocks, std::vector(clocks, kUnbounded));
  for (std::size_t c = 0; c < clocks; ++c) most[c][c] = 0;
  for (const ClockBound& message : messages) {
    std::int64_t& bound = most[message.receiver][message.sender];
    bound = std::min(bound, (message.received - message.sent).count());
  }
  for (std::size_t via = 0; via < clocks; ++via)
    for (std::size_t a = 0; a < clocks; ++a)
      for (std::size_t b = 0; b < clocks; ++b)
        if (most[a][via] != kUnbounded && most[via][b] != kUnbounded)
          most[a][b] = std::min(most[a][b], most[a][via] + most[via][b]);
  std::vector<ClockOffset> offsets;
  for (std::size_t c = 0; c < clocks; ++c) {
    if (most[c][c] < 0) return std::nullopt;
    if (most[0][c] == kUnbounded || most[c][0] == kUnbounded) {
      unbounded = c;
      return std::nullopt;
    }
    const std::int64_t upper = most[0][c], lower = -most[c][0];
    offsets.push_back(
        {Nanoseconds{floor_half(upper + lower)}, Nanoseconds{floor_half(upper - lower + 1)}});
  }
  return offsets;
}

ObservedRun observed_run(const DependencyGraph& graph, const Trace& predicted,
                         std::span<const ObservedRank> ranks) {
  PFEIFE_CHECK(predicted.events.size() == graph.size(), "a prediction of another plan");
  return Assembly(graph, predicted, ranks).run();
}

Trace without_optimizer(const DependencyGraph& graph, const Trace& trace) {
  Trace without = trace;
  for (const TaskId id : task_order(graph).order) {
    Event& event = without.events[id.index()];
    if (event.kind != TaskKind::Optimizer) continue;
    event.start = event.end = latest_end(graph, without, id);
    event.launch = Nanoseconds{0};
  }
  return without;
}

}  // namespace pfeife
