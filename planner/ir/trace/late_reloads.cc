// RELOADs as late as nothing else starts later for it.
#include <algorithm>

#include "planner/ir/trace/trace.h"

namespace pfeife {

void start_reloads_late(Trace& trace, const DependencyGraph& graph) {
  std::vector<Nanoseconds> latest(graph.size(), Nanoseconds::max());  // [task] that it may end
  const auto bound_inputs = [&](std::size_t t) {
    for (const Edge& edge : graph.edges_into(TaskId{t}))
      latest[edge.from.index()] = std::min(latest[edge.from.index()], trace.events[t].start);
  };
  const auto is_copied = [&](std::size_t t) { return graph.tasks[t].kind == TaskKind::Copy; };
  for (std::size_t t = 0; t < graph.size(); ++t)
    if (!is_copied(t)) bound_inputs(t);
  for (std::size_t t = graph.size(); t-- > 0;) {  // of each engine, the last copy first
    if (!is_copied(t)) continue;
    Event& event = trace.events[t];
    if (std::get<Action>(event.cell).op == Op::Reload && latest[t] > event.end &&
        latest[t] != Nanoseconds::max()) {
      event.start += latest[t] - event.end;
      event.end = latest[t];
    }
    bound_inputs(t);
  }
}

}  // namespace pfeife
