#include <algorithm>

#include "planner/ir/schedule/lowering.h"

namespace pfeife::lowering {

TiedReductions::TiedReductions(const Schedule& schedule, const Context& context) {
  group_.assign(context.stages.stages, kNone);
  for (const auto& tied : context.stages.tied) {
    const std::size_t group = groups_.size();
    for (const StageId s : tied)
      if (const std::size_t old = group_[s.index()]; old != kNone)
        std::ranges::replace(group_, old, group);
      else
        group_[s.index()] = group;
    groups_.emplace_back();
  }
  std::vector<bool> has(group_.size(), false);  // REDUCE_GRAD in its row
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& a) {
        if (a.op == Op::ReduceGrad) has[a.stage.index()] = true;
        if (makes_weight_gradient(a.op) && group_[a.stage.index()] != kNone)
          ++groups_[group_[a.stage.index()]].gradients_to_come;
      });
  for (std::size_t s = 0; s < group_.size(); ++s)
    if (group_[s] != kNone && !has[s]) groups_[group_[s]].stages.emplace_back(s);
}

const std::vector<StageId>* TiedReductions::completed_by(const Action& action) {
  if (!makes_weight_gradient(action.op)) return nullptr;
  const std::size_t group = group_[action.stage.index()];
  if (group == kNone || --groups_[group].gradients_to_come > 0) return nullptr;
  return &groups_[group].stages;
}

}  // namespace pfeife::lowering
