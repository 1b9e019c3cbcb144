#include "planner/ir/schedule/backward_passes.h"

namespace pfeife {
namespace {

/// Appends `next`, or turns the action before it into the B that both make together.
void append_merged(std::vector<Action>& actions, const Action& next) {
  if (!actions.empty() && next.op == Op::BackwardWeight) {
    Action& before = actions.back();
    if (before.op == Op::BackwardInput && before.stage == next.stage &&
        before.microbatch == next.microbatch) {
      before.op = Op::Backward;
      return;
    }
  }
  actions.push_back(next);
}

void append_split(std::vector<Action>& actions, const Action& next) {
  actions.push_back(next);
  if (next.op != Op::Backward) return;
  actions.back().op = Op::BackwardInput;
  actions.push_back(next);
  actions.back().op = Op::BackwardWeight;
}

/// Joins a cell with the one before it if together they are I and W.
bool merges(std::vector<Cell>& row, const Cell& cell) {
  const auto* next = std::get_if<Action>(&cell);
  auto* before = row.empty() ? nullptr : std::get_if<Action>(&row.back());
  if (!next || !before) return false;
  std::vector<Action> both{*before};
  append_merged(both, *next);
  *before = both.front();
  return both.size() == 1;
}

template <class Append>
Overlap rebuilt(const Overlap& overlap, Append&& append) {
  Overlap result;
  for (const Action& part : overlap.parts) append(result.parts, part);
  return result;
}

}  // namespace

Schedule merge_backward(const Schedule& schedule) {
  Schedule result;
  for (const auto& row : schedule.rows) {
    auto& merged = result.rows.emplace_back();
    for (const Cell& cell : row) {
      if (const auto* overlap = std::get_if<Overlap>(&cell)) {
        Overlap parts = rebuilt(*overlap, append_merged);
        merged.push_back(parts.parts.size() == 1 ? Cell{parts.parts.front()}
                                                 : Cell{std::move(parts)});
      } else if (!merges(merged, cell)) {
        merged.push_back(cell);
      }
    }
  }
  return result;
}

Schedule split_backward(const Schedule& schedule) {
  Schedule result;
  for (const auto& row : schedule.rows) {
    auto& split = result.rows.emplace_back();
    for (const Cell& cell : row) {
      std::vector<Action> actions;
      if (const auto* action = std::get_if<Action>(&cell)) append_split(actions, *action);
      if (const auto* overlap = std::get_if<Overlap>(&cell))
        split.emplace_back(rebuilt(*overlap, append_split));
      else if (actions.empty())
        split.push_back(cell);
      for (const Action& action : actions) split.emplace_back(action);
    }
  }
  return result;
}

}  // namespace pfeife
