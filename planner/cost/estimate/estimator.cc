#include "planner/cost/estimate/estimator.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {

std::variant<Trace, Deadlock> estimate(const DependencyGraph& graph, const StageCosts& costs,
                                       const EstimateOptions& options) {
  TaskOrder order = task_order(graph);
  if (!order.blocked.empty()) return Deadlock{std::move(order.blocked)};
  const std::vector<Nanoseconds> durations = slot_durations(graph.slots, costs);

  Trace trace;
  trace.source = TraceSource::Estimated;
  trace.ranks = graph.ranks;
  trace.events.resize(graph.size());
  for (const TaskId t : order.order) {
    const Task& task = graph.tasks[t.index()];
    Event& event = trace.events[t.index()];
    event.kind = task.kind;
    event.rank = task.rank;
    event.peer = task.peer;
    event.parties = task.parties;
    event.cell = task.cell;
    if (task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer)
      event.launch = options.launch_overhead;
    for (const Edge& edge : graph.edges_into(t)) {
      const Nanoseconds ready = trace.events[edge.from.index()].end;
      if (edge.kind == EdgeKind::Data) event.posted = std::max(event.posted, ready);
      if (!event.waited_for || ready > event.start) event.waited_for = edge.from.index();
      event.start = std::max(event.start, ready);
    }
    event.end = event.start + event.launch + durations[task.slot];
  }
  start_reloads_late(trace, graph);
  return trace;
}

CompiledGraph::CompiledGraph(const DependencyGraph& graph) : slots_(graph.slots.size()) {
  const TaskOrder order = task_order(graph);
  PFEIFE_CHECK(order.blocked.empty(), "a deadlocked graph has no makespan");
  const auto zero = static_cast<std::uint32_t>(slots_);

  struct Source {
    std::uint32_t end, delay;  // the time end[end] + duration[delay]
  };
  std::vector<Source> source(graph.size());
  std::vector<Source> waits;
  for (const TaskId t : order.order) {
    const Task& task = graph.tasks[t.index()];
    waits.clear();
    for (const Edge& edge : graph.edges_into(t)) waits.push_back(source[edge.from.index()]);
    const bool folds =
        task.kind == TaskKind::Transfer && waits.size() == 1 && waits[0].delay == zero;
    if (folds) {
      source[t.index()] = {waits[0].end, task.slot};
      continue;
    }
    compute_nodes_ += task.kind == TaskKind::Compute;
    // Sources without a delay first: an instruction takes one of them and one with.
    std::ranges::stable_sort(waits, {}, [&](const Source& s) { return s.delay != zero; });
    Source first{0, zero};
    std::size_t next = 0;
    if (!waits.empty() && waits[0].delay == zero) first = waits[next++];
    while (next + 1 < waits.size()) {
      program_.push_back({first.end, waits[next].end, waits[next].delay, zero});
      first = {static_cast<std::uint32_t>(program_.size()), zero};
      ++next;
    }
    const Source last = next < waits.size() ? waits[next] : Source{0, zero};
    program_.push_back({first.end, last.end, last.delay, task.slot});
    source[t.index()] = {static_cast<std::uint32_t>(program_.size()), zero};
  }
}

std::int64_t CompiledGraph::makespan(std::span<const std::int64_t> durations) const {
  PFEIFE_CHECK(durations.size() == slots_, durations.size(), " durations for ", slots_, " slots");
  thread_local std::vector<std::int64_t> duration, end;
  duration.assign(durations.begin(), durations.end());
  duration.push_back(0);
  end.resize(program_.size() + 1);
  end[0] = 0;
  std::int64_t longest = 0;
  const std::int64_t* const d = duration.data();
  std::int64_t* const e = end.data();
  std::size_t at = 0;
  for (const Instruction& step : program_) {
    const std::int64_t done =
        std::max(e[step.before], e[step.value] + d[step.delay]) + d[step.work];
    e[++at] = done;
    longest = std::max(longest, done);
  }
  return longest;
}

}  // namespace pfeife
