#include "planner/schedule_tool/lifetimes.h"

#include <algorithm>
#include <map>

#include "planner/ir/result/figures.h"

namespace pfeife::tool {

Holdings peak_holdings(const Schedule& schedule, RankId rank) {
  std::ptrdiff_t in_flight = 0, for_weight = 0, most_in_flight = 0, most_for_weight = 0;
  bool backward = false;
  for (const Cell& cell : schedule.rows[rank.index()])
    for_each_action(cell, [&](const Action& a) {
      const Operation& kind = operation(a.op);
      in_flight += kind.saved;
      backward = backward || kind.saved < 0;
      for_weight += kind.weight_saved;
      most_in_flight = std::max(most_in_flight, in_flight);
      most_for_weight = std::max(most_for_weight, for_weight);
    });
  if (!backward) most_in_flight = std::min<std::ptrdiff_t>(most_in_flight, 1);
  return {static_cast<std::size_t>(most_in_flight), static_cast<std::size_t>(most_for_weight)};
}

std::vector<std::vector<MemorySample>> in_flight(const Trace& trace) {
  const bool forward_only = forward_latency(trace).has_value();
  std::vector<std::map<Nanoseconds, std::int64_t>> changes(trace.ranks);
  for (const Event& event : trace.events)
    if (event.kind == TaskKind::Compute)
      for_each_action(event.cell, [&](const Action& a) {
        const int saved = operation(a.op).saved;
        if (saved > 0) changes[event.rank.index()][event.start] += saved;
        if (saved < 0 || forward_only) --changes[event.rank.index()][event.end];
      });
  std::vector<std::vector<MemorySample>> samples(trace.ranks);
  for (std::size_t r = 0; r < trace.ranks; ++r) {
    Bytes now{0};
    for (const auto& [time, change] : changes[r])
      if (change != 0) samples[r].push_back({time, now = now + Bytes{change}});
  }
  return samples;
}

}  // namespace pfeife::tool
