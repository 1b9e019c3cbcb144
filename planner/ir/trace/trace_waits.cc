#include "planner/ir/trace/trace_waits.h"

#include <algorithm>

namespace pfeife {

void explain_waits(const DependencyGraph& graph, Trace& trace) {
  for (std::size_t t = 0; t < graph.size(); ++t) {
    Event& event = trace.events[t];
    event.posted = Nanoseconds{0};
    event.waited_for.reset();
    for (const Edge& edge : graph.edges_into(TaskId{t})) {
      const Event& before = trace.events[edge.from.index()];
      if (edge.kind == EdgeKind::Data) event.posted = std::max(event.posted, before.end);
      if (!event.waited_for || before.end > trace.events[*event.waited_for].end)
        event.waited_for = edge.from.index();
    }
  }
}

}  // namespace pfeife
