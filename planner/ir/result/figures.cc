#include "planner/ir/result/figures.h"

#include <algorithm>

namespace pfeife {

Nanoseconds span(const Trace& trace) {
  std::vector<std::optional<Nanoseconds>> begin(trace.ranks);
  std::vector<Nanoseconds> end(trace.ranks, Nanoseconds{0});
  for (const Event& event : trace.events) {
    if (event.kind != TaskKind::Compute && event.kind != TaskKind::Optimizer) continue;
    const std::size_t rank = event.rank.index();
    begin[rank] = std::min(begin[rank].value_or(event.start), event.start);
    end[rank] = std::max(end[rank], event.end);
  }
  Nanoseconds longest{0};
  for (std::size_t rank = 0; rank < trace.ranks; ++rank)
    if (begin[rank]) longest = std::max(longest, end[rank] - *begin[rank]);
  return longest;
}

Nanoseconds step_without_optimizer(const Trace& trace) {
  std::optional<Nanoseconds> begin;
  Nanoseconds end{0};
  for (const Event& event : trace.events) {
    begin = std::min(begin.value_or(event.start), event.start);
    if (event.kind == TaskKind::Compute) end = std::max(end, event.end);
  }
  return begin ? std::max(end - *begin, Nanoseconds{0}) : Nanoseconds{0};
}

}  // namespace pfeife
