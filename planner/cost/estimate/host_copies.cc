#include "planner/cost/estimate/host_copies.h"

#include <algorithm>

#include "planner/cost/estimate/estimator.h"

namespace pfeife {
namespace {

bool has_copies(const Schedule& schedule) {
  bool found = false;
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) { found = found || is_copy(action.op); });
  return found;
}

/// When the action that saves a value begins, and when the value is away, coming back and read.
struct Times {
  bool offloaded = false;
  Nanoseconds begun{0}, away_from{0}, away{0}, back_from{0}, back{0}, read{0};
};

using Microbatches = std::map<std::pair<StageId, MicrobatchId>, Times>;

void note(const Event& event, Microbatches& times) {
  for_each_action(event.cell, [&](const Action& action) {
    if (!is_compute(action.op) && !is_copy(action.op)) return;
    Times& of = times[{action.stage, *action.microbatch}];
    if (action.op == Op::Forward) of.begun = event.start;
    if (action.op == Op::Offload)
      of.offloaded = true, of.away_from = event.start, of.away = event.end;
    if (action.op == Op::Reload) of.back_from = event.start, of.back = event.end;
    if (makes_input_gradient(action.op)) of.read = event.end;
  });
}

/// The windows of a row whose computations have theirs.
void fill_windows(std::vector<HostCopies::Window>& windows, const std::vector<bool>& holds) {
  Nanoseconds before{0};
  for (std::size_t p = 0; p < windows.size(); ++p) {
    if (!holds[p]) windows[p].start = windows[p].end = before;
    before = windows[p].end;
  }
  Nanoseconds next = before;
  for (std::size_t p = windows.size(); p-- > 0;) {
    windows[p].next = next;
    if (holds[p]) next = windows[p].start;
  }
}

}  // namespace

void Level::hold(Nanoseconds start, Nanoseconds end, Bytes bytes) {
  if (start >= end) return;
  changes_.push_back({start, bytes, {}});
  changes_.push_back({end, Bytes{0} - bytes, {}});
}

void Level::sort() {
  std::ranges::sort(changes_, {}, [](const Change& c) { return std::pair{c.time, c.by}; });
  Bytes level{0};
  for (Change& change : changes_) change.level = level += change.by;
}

Bytes Level::most(Nanoseconds start, Nanoseconds end) const {
  const bool empty = start >= end;
  const auto is_before = [&](const Change& c) {
    return c.time < start || (c.time == start && (!empty || c.by < Bytes{0}));
  };
  auto at = std::ranges::partition_point(changes_, is_before);
  Bytes most = at == changes_.begin() ? Bytes{0} : std::prev(at)->level;
  for (; !empty && at != changes_.end() && at->time < end; ++at) most = std::max(most, at->level);
  return most;
}

Bytes Level::most() const {
  Bytes most{0};
  for (const Change& change : changes_) most = std::max(most, change.level);
  return most;
}

Bytes HostCopies::offloaded(const Action& action) const {
  const auto at = bytes.find({action.stage, *action.microbatch});
  return at == bytes.end() ? Bytes{0} : at->second;
}

std::vector<HostCopies> host_copies(const Schedule& lowered, const StageCosts& costs,
                                    const Placement& placement) {
  std::vector<HostCopies> ranks;
  if (!has_copies(lowered)) return ranks;
  const DependencyGraph graph = dependencies(lowered, stage_graph(costs), placement, {});
  const auto answer = estimate(graph, costs);
  const auto* run = std::get_if<Trace>(&answer);
  if (run == nullptr) return ranks;
  std::vector<std::vector<bool>> holds;
  for (const auto& row : lowered.rows) {
    ranks.emplace_back().windows.resize(row.size());
    holds.emplace_back(row.size(), false);
  }
  std::vector<Microbatches> times(ranks.size());
  for (std::size_t t = 0; t < graph.size(); ++t) {
    const Task& task = graph.tasks[t];
    const Event& event = run->events[t];
    note(event, times[task.rank.index()]);
    if (task.kind != TaskKind::Compute && task.kind != TaskKind::Optimizer) continue;
    ranks[task.rank.index()].windows[task.position] = {event.start, event.end, event.end};
    holds[task.rank.index()][task.position] = true;
  }
  const std::vector<MicrobatchId> last = last_forwards(lowered, costs.stages.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    fill_windows(ranks[r].windows, holds[r]);
    for (const auto& [value, at] : times[r]) {
      const auto& [stage, m] = value;
      if (!at.offloaded) continue;
      const Bytes bytes = stage_cost(costs, forward(stage, m), m == last[stage.index()]).offloaded;
      ranks[r].bytes[value] = bytes;
      ranks[r].device.hold(at.begun, at.away, bytes);
      ranks[r].device.hold(at.back_from, at.read, bytes);
      ranks[r].host.hold(at.away_from, at.back, bytes);
    }
    ranks[r].device.sort();
    ranks[r].host.sort();
  }
  return ranks;
}

}  // namespace pfeife
