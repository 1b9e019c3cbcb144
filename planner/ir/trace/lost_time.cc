#include "planner/ir/trace/lost_time.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// What gives a task's times back once those before it are known.
struct Part {
  Nanoseconds gap{0}, launch{0}, work{0};
};

Nanoseconds first_start(const Trace& trace) {
  Nanoseconds first = Nanoseconds::max();
  for (const Event& event : trace.events) first = std::min(first, event.start);
  return first;
}

std::vector<Part> parts_of(const DependencyGraph& graph, const Trace& trace) {
  const Nanoseconds origin = first_start(trace);
  std::vector<Part> parts(graph.size());
  for (std::size_t t = 0; t < graph.size(); ++t) {
    Nanoseconds ready = origin;
    for (const Edge& edge : graph.edges_into(TaskId{t}))
      ready = std::max(ready, trace.events[edge.from.index()].end);
    const Event& event = trace.events[t];
    parts[t] = {event.start - ready, event.launch, event.end - event.start - event.launch};
  }
  return parts;
}

Nanoseconds step_of(const DependencyGraph& graph, const std::vector<TaskId>& order,
                    const std::vector<Part>& parts, std::vector<Nanoseconds>& ends) {
  Nanoseconds last{0};
  for (const TaskId id : order) {
    Nanoseconds ready{0};
    for (const Edge& edge : graph.edges_into(id)) ready = std::max(ready, ends[edge.from.index()]);
    const Part& part = parts[id.index()];
    ends[id.index()] = ready + part.gap + part.launch + part.work;
    last = std::max(last, ends[id.index()]);
  }
  return last;
}

void exchange(Loss loss, const Task& task, Part& part, const Part& measured) {
  const bool computes = task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer;
  if (loss == Loss::Transfers && !computes) part = measured;
  if (!computes) return;
  if (loss == Loss::Compute) part.work = measured.work;
  if (loss == Loss::Gaps) part.launch = measured.launch;
  if (loss == Loss::Stalls) part.gap = measured.gap;
}

}  // namespace

std::string to_string(Loss loss) {
  constexpr std::array<const char*, kLosses> kNames{"slower compute", "gaps between operators",
                                                    "late transfers", "host stalls"};
  return kNames[static_cast<std::size_t>(loss)];
}

Nanoseconds LostTime::of(Loss loss) const {
  Nanoseconds sum{0};
  for (const auto& losses : of_rank) sum += losses[static_cast<std::size_t>(loss)];
  return sum;
}

Nanoseconds LostTime::total() const {
  Nanoseconds sum{0};
  for (std::size_t l = 0; l < kLosses; ++l) sum += of(static_cast<Loss>(l));
  return sum;
}

LostTime lost_time(const DependencyGraph& graph, const Trace& predicted, const Trace& measured) {
  PFEIFE_CHECK(predicted.events.size() == graph.size() && measured.events.size() == graph.size(),
               "traces of another plan");
  const std::vector<TaskId> order = task_order(graph).order;
  std::vector<Part> parts = parts_of(graph, predicted);
  const std::vector<Part> wanted = parts_of(graph, measured);
  std::vector<Nanoseconds> ends(graph.size());
  LostTime lost{.predicted = step_time(predicted), .measured = step_time(measured)};
  lost.of_rank.resize(graph.ranks);
  Nanoseconds before = step_of(graph, order, parts, ends);
  PFEIFE_CHECK(before == lost.predicted, "the graph does not give the prediction back");
  for (std::size_t l = 0; l < kLosses; ++l)
    for (std::size_t r = 0; r < graph.ranks; ++r) {
      for (std::size_t t = 0; t < graph.size(); ++t)
        if (graph.tasks[t].rank.index() == r)
          exchange(static_cast<Loss>(l), graph.tasks[t], parts[t], wanted[t]);
      const Nanoseconds now = step_of(graph, order, parts, ends);
      lost.of_rank[r][l] = now - before;
      before = now;
    }
  PFEIFE_CHECK(before == lost.measured, "the graph does not give the measurement back");
  return lost;
}

}  // namespace pfeife
