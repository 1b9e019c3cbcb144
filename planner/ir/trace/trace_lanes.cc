#include "planner/ir/trace/trace_lanes.h"

#include <algorithm>
#include <tuple>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Sorts by start and gives each item the lowest lane that is free; returns the number of lanes, at
/// least 1.
std::size_t assign_lanes(const Trace& trace, std::vector<LaneItem>& items) {
  const auto start = [&](const LaneItem& item) {
    return std::tuple{trace.events[item.event].start, trace.events[item.event].end, item.event};
  };
  std::ranges::sort(items, {}, start);
  std::vector<Nanoseconds> free_from;
  for (LaneItem& item : items) {
    const Event& event = trace.events[item.event];
    const auto lane =
        std::ranges::find_if(free_from, [&](Nanoseconds end) { return end <= event.start; });
    item.lane = static_cast<std::size_t>(lane - free_from.begin());
    if (lane == free_from.end()) free_from.push_back(event.end);
    free_from[item.lane] = event.end;
  }
  return std::max<std::size_t>(1, free_from.size());
}

}  // namespace

std::vector<RankLanes> lanes(const Trace& trace) {
  std::vector<RankLanes> rows(trace.ranks);
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    PFEIFE_CHECK(event.rank.index() < rows.size(), "event ", i, " is on rank ", event.rank.value);
    RankLanes& lanes = rows[event.rank.index()];
    const bool holds = event.kind == TaskKind::Compute || event.kind == TaskKind::Optimizer;
    (holds ? lanes.compute : lanes.communication).push_back({i, 0, false});
    if (event.kind != TaskKind::Reduction) continue;
    for (const RankId party : event.parties) {
      PFEIFE_CHECK(party.index() < rows.size(), "event ", i, " has rank ", party.value);
      if (party != event.rank) rows[party.index()].communication.push_back({i, 0, true});
    }
  }
  for (RankLanes& row : rows) {
    row.compute_lanes = assign_lanes(trace, row.compute);
    row.communication_lanes = assign_lanes(trace, row.communication);
  }
  return rows;
}

}  // namespace pfeife
