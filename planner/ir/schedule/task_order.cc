// Kahn's algorithm over a DependencyGraph.
#include <numeric>

#include "planner/ir/schedule/dependency_graph.h"

namespace pfeife {

TaskOrder task_order(const DependencyGraph& graph) {
  const std::size_t count = graph.size();
  std::vector<std::uint32_t> waits(count), begin(count + 1, 0);
  for (const Edge& edge : graph.edges) ++begin[edge.from.index() + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::uint32_t> next(graph.edges.size()), fill(begin.begin(), begin.end() - 1);
  for (std::size_t t = 0; t < count; ++t) {
    const auto into = graph.edges_into(TaskId{t});
    waits[t] = static_cast<std::uint32_t>(into.size());
    for (const Edge& edge : into) next[fill[edge.from.index()]++] = static_cast<std::uint32_t>(t);
  }
  TaskOrder result;
  result.order.reserve(count);
  for (std::size_t t = 0; t < count; ++t)
    if (waits[t] == 0) result.order.emplace_back(static_cast<std::int64_t>(t));
  for (std::size_t i = 0; i < result.order.size(); ++i) {
    const std::size_t from = result.order[i].index();
    for (std::uint32_t e = begin[from]; e < begin[from + 1]; ++e)
      if (--waits[next[e]] == 0) result.order.emplace_back(static_cast<std::int64_t>(next[e]));
  }
  for (std::size_t t = 0; t < count; ++t)
    if (waits[t] != 0) result.blocked.emplace_back(static_cast<std::int64_t>(t));
  return result;
}

}  // namespace pfeife
