// OFFLOAD and RELOAD, put into rows that are lowered.
//
// The rows are run without copies and with links that never contend; that says when a microbatch's
// values are made and when they are read. Every copy then has a time on its rank's engines, and
// stands in the row behind the last computation that is done by then. So it never holds up what was
// there before it, and the copies of an engine stand in the order in which it runs them.
#include <algorithm>
#include <map>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/lower.h"

namespace pfeife {
namespace {

struct Span {
  Nanoseconds start{0}, end{0};
};

/// A computation of a rank in the contention-free run.
struct Computation {
  std::uint32_t position = 0;
  Span span;
};

/// What a stage saves of a microbatch, between its F and its B or I.
struct SavedValue {
  StageId stage;
  MicrobatchId microbatch;
  Span between;              // end of F, start of B or I
  std::uint32_t reader = 0;  // position of B or I
  Nanoseconds out{0}, back{0};
  Span offload, reload;  // once they are placed
};

/// [task] when it runs.
std::vector<Span> run(const DependencyGraph& graph, const StageCosts& costs) {
  const std::vector<Nanoseconds> durations = slot_durations(graph.slots, costs);
  std::vector<Span> spans(graph.size());
  for (const TaskId t : task_order(graph).order) {
    Span& span = spans[t.index()];
    for (const Edge& edge : graph.edges_into(t))
      span.start = std::max(span.start, spans[edge.from.index()].end);
    span.end = span.start + durations[graph.tasks[t.index()].slot];
  }
  return spans;
}

/// Places the copies of values in the order of their F; false if one would be back before it is
/// away.
bool place_copies(std::vector<SavedValue>& values, bool one_engine) {
  Nanoseconds free{0};
  for (SavedValue& value : values) {
    value.offload.start = std::max(free, value.between.start);
    value.offload.end = free = value.offload.start + value.out;
  }
  std::vector<SavedValue*> by_reader;
  for (SavedValue& value : values) by_reader.push_back(&value);
  std::ranges::stable_sort(by_reader, std::ranges::greater{},
                           [](const SavedValue* v) { return v->reader; });
  Nanoseconds next = Nanoseconds::max();
  auto before = values.rbegin();  // the last OFFLOAD that may reach into the RELOAD to place
  for (SavedValue* value : by_reader) {
    next = std::min(next, value->between.end);
    for (; one_engine && before != values.rend(); ++before) {
      if (before->offload.start >= next) continue;
      if (before->offload.end <= next - value->back) break;
      next = before->offload.start;
    }
    value->reload = {next - value->back, next};
    next = value->reload.start;
    if (value->reload.start <= value->offload.end) return false;
  }
  return true;
}

class Rank {
 public:
  Rank(const std::vector<Cell>& row, const StageCosts& costs) : row_(row), costs_(costs) {}

  void add(std::uint32_t position, Span span) { computations_.push_back({position, span}); }

  /// The row with the copies of what is wanted and fits.
  std::vector<Cell> with_copies(const std::vector<MicrobatchId>& last,
                                const std::function<bool(StageId, MicrobatchId)>& wanted) {
    std::vector<SavedValue> placed;
    for (const SavedValue& value : saved_values(last, wanted)) {
      std::vector<SavedValue> more = placed;
      more.push_back(value);
      if (place_copies(more, costs_.one_copy_engine)) placed = std::move(more);
    }
    place_copies(placed, costs_.one_copy_engine);
    return with_copies(placed);
  }

 private:
  /// What stages that offload save, in the order of F.
  std::vector<SavedValue> saved_values(
      const std::vector<MicrobatchId>& last,
      const std::function<bool(StageId, MicrobatchId)>& wanted) const {
    std::vector<SavedValue> values;
    std::map<std::pair<StageId, MicrobatchId>, std::size_t> number;
    for (const Computation& at : computations_)
      for_each_action(row_[at.position], [&](const Action& action) {
        if (action.op == Op::Forward && wanted(action.stage, *action.microbatch)) {
          const StageCost& cost =
              stage_cost(costs_, action, action.microbatch == last[action.stage.index()]);
          if (cost.offloaded <= Bytes{0}) return;
          number[{action.stage, *action.microbatch}] = values.size();
          values.push_back({action.stage,
                            *action.microbatch,
                            {at.span.end, at.span.end},
                            0,
                            cost.offload,
                            cost.reload,
                            {},
                            {}});
        } else if (makes_input_gradient(action.op)) {
          const auto value = number.find({action.stage, *action.microbatch});
          if (value == number.end()) return;
          values[value->second].between.end = at.span.start;
          values[value->second].reader = at.position;
        }
      });
    return values;
  }

  std::vector<Cell> with_copies(const std::vector<SavedValue>& placed) const {
    struct Copy {
      Nanoseconds start{0};
      Action action;
      std::uint32_t reader = 0;
    };
    std::vector<Copy> copies;
    for (const SavedValue& value : placed) {
      copies.push_back({value.offload.start, offload(value.stage, value.microbatch), value.reader});
      copies.push_back({value.reload.start, reload(value.stage, value.microbatch), value.reader});
    }
    std::ranges::stable_sort(copies, {}, [](const Copy& c) {
      return std::pair{c.start, c.action.op};
    });
    std::vector<std::vector<Cell>> behind(row_.size());  // [position]
    for (const Copy& copy : copies) {
      auto next = std::ranges::upper_bound(computations_, copy.start, {},
                                           [](const Computation& c) { return c.span.end; });
      while (std::prev(next)->position >= copy.reader) --next;
      behind[std::prev(next)->position].emplace_back(copy.action);
    }
    std::vector<Cell> row;
    row.reserve(row_.size() + copies.size());
    for (std::size_t p = 0; p < row_.size(); ++p) {
      row.push_back(row_[p]);
      row.insert(row.end(), behind[p].begin(), behind[p].end());
    }
    return row;
  }

  const std::vector<Cell>& row_;
  const StageCosts& costs_;
  std::vector<Computation> computations_;  // in row order
};

}  // namespace

Schedule with_offload(const Schedule& lowered, const StageCosts& costs, const Placement& placement,
                      const std::function<bool(StageId, MicrobatchId)>& wanted) {
  const DependencyGraph graph = dependencies(lowered, stage_graph(costs), placement, {});
  const std::vector<Span> spans = run(graph, costs);
  std::vector<Rank> ranks;
  for (const auto& row : lowered.rows) ranks.emplace_back(row, costs);
  for (std::size_t t = 0; t < graph.size(); ++t)
    if (const Task& task = graph.tasks[t]; task.kind == TaskKind::Compute)
      ranks[task.rank.index()].add(task.position, spans[t]);
  const std::vector<MicrobatchId> last = last_forwards(lowered, costs.stages.size());
  Schedule result;
  for (Rank& rank : ranks) result.rows.push_back(rank.with_copies(last, wanted));
  return result;
}

}  // namespace pfeife
