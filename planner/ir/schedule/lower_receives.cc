// RECVs later than lower() puts them: right before the action that reads the message.
//
// Rows that let a RECV pass actions alone, and no message or reduction, cannot deadlock. Take the
// list of lower_ready.cc, from which all rows are projected, a RECV x in it and an action c behind
// it in the row of x that does not read x. What c waits for is before c in that row or has come by
// a RECV before c in that row, and all of those are before x in the row, as only actions lie
// between x and c. None of them waits for x. So c, and what it waits for, may stand before x in the
// list, which is then the list of the rows in which x has passed c.
#include <algorithm>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/lower.h"

namespace pfeife {
namespace {

const Action* recv_in(const Cell& cell) {
  const auto* action = std::get_if<Action>(&cell);
  return action != nullptr && action->op == Op::Recv ? action : nullptr;
}

/// The cell has the action that uses up the message's buffer.
bool reads(const Cell& cell, const Action& recv) {
  bool found = false;
  for_each_action(cell, [&](const Action& action) {
    found = found || (action.stage == recv.stage && action.microbatch == recv.microbatch &&
                      (recv.direction == Direction::Forward ? action.op == Op::Forward
                                                            : makes_input_gradient(action.op)));
  });
  return found;
}

bool is_computed(const Cell& cell) {
  bool all = true;
  for_each_action(cell, [&](const Action& action) { all = all && is_compute(action.op); });
  return all;
}

/// Two messages of one reader.
bool read_together(const Action& a, const Action* b) {
  return b != nullptr && a.stage == b->stage && a.microbatch == b->microbatch &&
         a.direction == b->direction;
}

enum class Passes { Actions, Everything };

std::vector<Cell> received_late(const std::vector<Cell>& row, Passes passes) {
  std::vector<Cell> late, passed;  // from the end of the row
  late.reserve(row.size());
  for (auto cell = row.rbegin(); cell != row.rend(); ++cell) {
    if (const Action* recv = recv_in(*cell)) {
      const auto may_pass = [&](const Cell& next) {
        if (reads(next, *recv) || read_together(*recv, recv_in(next))) return false;
        return passes == Passes::Everything || is_computed(next);
      };
      passed.clear();
      while (!late.empty() && may_pass(late.back())) {
        passed.push_back(std::move(late.back()));
        late.pop_back();
      }
      late.push_back(*cell);
      std::move(passed.rbegin(), passed.rend(), std::back_inserter(late));
    } else {
      late.push_back(*cell);
    }
  }
  std::ranges::reverse(late);
  return late;
}

Schedule received_late(const Schedule& lowered, Passes passes) {
  Schedule late;
  for (const std::vector<Cell>& row : lowered.rows) late.rows.push_back(received_late(row, passes));
  return late;
}

}  // namespace

Schedule with_receives_at_need(const Schedule& lowered) {
  return received_late(lowered, Passes::Everything);
}

Schedule with_late_receives(const Schedule& lowered, const StageGraph& stages,
                            const Placement& placement) {
  Schedule late = with_receives_at_need(lowered);
  const Semantics blocking{.blocking = true};
  if (task_order(dependencies(late, stages, placement, blocking)).blocked.empty()) return late;
  return received_late(lowered, Passes::Actions);
}

}  // namespace pfeife
