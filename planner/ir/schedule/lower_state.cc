// Actions of a stage that concern no single microbatch: parameters gathered and released, gradients
// reduced, their norm, optimizer. A row that has such actions of a stage already keeps its own.
#include <algorithm>
#include <optional>
#include <set>

#include "planner/ir/schedule/lower.h"
#include "planner/ir/schedule/lowering.h"

namespace pfeife {
namespace lowering {
namespace {

std::set<StageId> stages_with(const std::vector<Cell>& row, Op op) {
  std::set<StageId> found;
  for (const Cell& cell : row)
    for_each_action(cell, [&](const Action& a) {
      if (a.op == op) found.insert(a.stage);
    });
  return found;
}

/// A stage that a rank will compute soon, and the cell it was first seen in.
struct Upcoming {
  StageId stage;
  std::size_t cell = 0;
};
using Window = std::vector<Upcoming>;

/// Puts the stages of a cell in front of those upcoming after it. At least `size` are kept if there
/// are as many; an overlap cell is never torn apart.
Window widen(const Cell& cell, std::size_t position, const Window& later, std::size_t size) {
  Window all;
  const auto add = [&](const Upcoming& next) {
    if (std::ranges::find(all, next.stage, &Upcoming::stage) == all.end()) all.push_back(next);
  };
  for_each_action(cell, [&](const Action& a) { add({a.stage, position}); });
  for (const Upcoming& next : later) {
    if (all.size() >= size && next.cell != all.back().cell) break;
    add(next);
  }
  return all;
}

/// [cell] the stages that the rank computes from there on, nearest first.
std::vector<Window> windows(const std::vector<Cell>& row, std::size_t size) {
  std::vector<Window> upcoming(row.size() + 1);
  for (std::size_t p = row.size(); p-- > 0;)
    upcoming[p] = std::holds_alternative<std::monostate>(row[p])
                      ? upcoming[p + 1]
                      : widen(row[p], p, upcoming[p + 1], size);
  return upcoming;
}

std::vector<Cell> with_unshard_reshard(const std::vector<Cell>& row) {
  constexpr std::size_t kActiveStages = 3;
  const std::vector<Window> upcoming = windows(row, kActiveStages);
  std::vector<Cell> result;
  std::set<StageId> active;
  for (std::size_t p = 0; p < row.size(); ++p) {
    const Window& window = upcoming[p];
    std::erase_if(active,
                  [&](StageId s) {  // release in ascending order, then gather in order of use
                    if (std::ranges::find(window, s, &Upcoming::stage) != window.end())
                      return false;
                    result.emplace_back(stage_action(Op::Reshard, s));
                    return true;
                  });
    for (const Upcoming& next : window)
      if (active.insert(next.stage).second)
        result.emplace_back(stage_action(Op::Unshard, next.stage));
    result.push_back(row[p]);
  }
  for (const StageId s : active) result.emplace_back(stage_action(Op::Reshard, s));
  return result;
}

std::set<StageId> tied_stages(const Context& context) {
  std::set<StageId> tied;
  for (const auto& group : context.stages.tied) tied.insert(group.begin(), group.end());
  return tied;
}

}  // namespace

void add_unshard_reshard(Schedule& schedule) {
  for (auto& row : schedule.rows)
    if (stages_with(row, Op::Unshard).empty() && stages_with(row, Op::Reshard).empty())
      row = with_unshard_reshard(row);
}

void add_untied_reduce_grad(Schedule& schedule, const Context& context) {
  const std::set<StageId> tied = tied_stages(context);
  std::vector<std::size_t> done(context.stages.stages, 0);
  const std::size_t gradients = context.microbatches * (context.stages.head_barriers > 0 ? 2 : 1);
  for (auto& row : schedule.rows) {
    const std::set<StageId> has = stages_with(row, Op::ReduceGrad);
    std::vector<Cell> result;
    result.reserve(row.size() + 4);
    for (Cell& cell : row) {
      std::vector<StageId> complete;
      for_each_action(cell, [&](const Action& a) {
        if (makes_weight_gradient(a.op) && ++done[a.stage.index()] == gradients &&
            !has.contains(a.stage) && !tied.contains(a.stage))
          complete.push_back(a.stage);
      });
      result.push_back(std::move(cell));
      for (const StageId s : complete) result.emplace_back(stage_action(Op::ReduceGrad, s));
    }
    row = std::move(result);
  }
}

void add_optimizer_steps(Schedule& schedule, const Context& context) {
  const std::set<StageId> tied = tied_stages(context);
  for (auto& row : schedule.rows) {
    std::set<StageId> seen = stages_with(row, Op::OptimizerStep);
    std::vector<StageId> stages;  // the one whose last backward is last comes first here
    for (std::size_t p = row.size(); p-- > 0;)
      for_each_action(row[p], [&](const Action& a) {
        if (makes_weight_gradient(a.op) && seen.insert(a.stage).second) stages.push_back(a.stage);
      });
    std::ranges::reverse(stages);
    // A stage that waits for a reduction would hold up those that do not.
    std::stable_partition(stages.begin(), stages.end(),
                          [&](StageId s) { return !tied.contains(s); });
    for (const StageId s : stages) row.emplace_back(stage_action(Op::OptimizerStep, s));
  }
}

}  // namespace lowering

void add_norm_reduction(Schedule& lowered) {
  for (auto& row : lowered.rows) {
    std::vector<Cell> steps;
    std::optional<StageId> last;
    bool there = false;
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& a) {
        if (makes_weight_gradient(a.op)) last = a.stage;
        if (a.op == Op::OptimizerStep) steps.push_back(cell);
        there = there || a.op == Op::ReduceNorm;
      });
    if (there || !last) continue;
    std::erase_if(row, [](const Cell& cell) {
      const auto* action = std::get_if<Action>(&cell);
      return action != nullptr && action->op == Op::OptimizerStep;
    });
    row.emplace_back(stage_action(Op::ReduceNorm, *last));
    row.insert(row.end(), steps.begin(), steps.end());
  }
}

}  // namespace pfeife
