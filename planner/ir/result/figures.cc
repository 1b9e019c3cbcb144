#include "planner/ir/result/figures.h"

#include <algorithm>
#include <map>

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

std::optional<Nanoseconds> forward_latency(const Trace& trace) {
  struct Way {
    Nanoseconds begin, end;
  };
  std::map<MicrobatchId, Way> ways;
  bool backward = false;
  for (const Event& event : trace.events) {
    if (event.kind != TaskKind::Compute) continue;
    for_each_action(event.cell, [&](const Action& action) {
      backward = backward || action.op != Op::Forward;
      Way& way = ways.try_emplace(*action.microbatch, Way{event.start, event.end}).first->second;
      way.begin = std::min(way.begin, event.start), way.end = std::max(way.end, event.end);
    });
    if (backward) return std::nullopt;
  }
  std::optional<Nanoseconds> longest;
  for (const auto& [microbatch, way] : ways)
    longest = std::max(longest.value_or(Nanoseconds{0}), way.end - way.begin);
  return longest;
}

}  // namespace pfeife
