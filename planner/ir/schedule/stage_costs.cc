#include "planner/ir/schedule/stage_costs.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "planner/ir/schedule/action_time.h"

namespace pfeife {

StageGraph stage_graph(const StageCosts& costs) {
  StageGraph graph;
  graph.stages = costs.stages.size();
  for (const StagePair& pair : costs.pairs)
    graph.edges.push_back({pair.from, pair.to, pair.has_gradient});
  for (const StageReduction& reduction : costs.reductions) graph.tied.push_back(reduction.stages);
  graph.replicas = !costs.replicas.empty();
  graph.last_apart = !costs.last.stages.empty();
  graph.mode = costs.mode;
  return graph;
}

Nanoseconds step_of(const StageCosts& costs, const Placement& placement, StageId stage) {
  const bool alone = placement.stages() == placement.ranks() && !costs.replicas.empty();
  return costs.stages[stage.index()].optimizer +
         (alone ? costs.replicas[stage.index()].behind : Nanoseconds{0});
}

const StagePair* find_pair(const StageCosts& costs, StageId from, StageId to) {
  const auto at = std::lower_bound(costs.pairs.begin(), costs.pairs.end(), std::pair{from, to},
                                   [](const StagePair& pair, const auto& key) {
                                     return std::pair{pair.from, pair.to} < key;
                                   });
  const bool found = at != costs.pairs.end() && at->from == from && at->to == to;
  return found ? &*at : nullptr;
}

StageCosts uniform_costs(std::size_t stages, Nanoseconds forward, Nanoseconds backward_input,
                         Nanoseconds backward_weight, Nanoseconds transfer) {
  StageCosts costs;
  StageCost cost;
  cost.forward = forward;
  cost.backward_input = backward_input;
  cost.backward_weight = backward_weight;
  cost.saved = Bytes{1};
  costs.stages.assign(stages, cost);
  for (std::size_t s = 0; s + 1 < stages; ++s) {
    const StageId from{s}, to{s + 1};
    costs.pairs.push_back({from, to, Bytes{1}, Bytes{1}, transfer, transfer});
    costs.values.push_back({from, {to}, Bytes{1}, Bytes{1}, false, {false}});
  }
  return costs;
}

StageCosts without_backward(StageCosts costs) {
  costs.mode = Mode::Forward;
  for (StageCost& stage : costs.stages)
    stage = {.forward = stage.forward,
             .forward_collectives = stage.forward_collectives,
             .parameters = stage.parameters,
             .temporary = {.forward = stage.unkept_forward},
             .unkept_forward = stage.unkept_forward,
             .model_input = stage.model_input};
  for (StagePair& pair : costs.pairs) {
    pair.gradient_bytes = Bytes{0}, pair.backward_time = Nanoseconds{0};
    pair.has_gradient = false;
  }
  for (StageValue& value : costs.values) {
    value.gradient_bytes = Bytes{0};
    value.saved_by_sender = false;
    value.saved_by_receiver.assign(value.to.size(), false);
  }
  costs.reductions.clear(), costs.replicas.clear();
  costs.norm.reset(), costs.last = {};
  return costs;
}

Nanoseconds action_time(const Action& action, const StageCosts& costs, bool last) {
  const bool apart = last && !costs.last.stages.empty();
  const StageCost& cost = (apart ? costs.last.stages : costs.stages)[action.stage.index()];
  switch (action.op) {
    case Op::Forward:
      return cost.forward;
    case Op::Backward:
      return cost.backward();
    case Op::BackwardInput:
      return cost.backward_input;
    case Op::BackwardWeight:
      return cost.backward_weight;
    case Op::OptimizerStep:
      return cost.optimizer;
    default:
      return Nanoseconds{0};
  }
}

Nanoseconds side_by_side_time(std::span<const Action> actions, const StageCosts& costs,
                              const std::function<bool(const Action&)>& last) {
  const auto longer = [&](Nanoseconds compute) {
    return Nanoseconds{std::llround(static_cast<double>(compute.count()) * costs.overlap_factor)};
  };
  Nanoseconds compute{0}, waiting{0}, alone{0};
  for (const Action& action : actions) {
    const StageCost& stage = costs.stages[action.stage.index()];
    const Nanoseconds hidden = action.op == Op::Forward          ? stage.forward_collectives
                               : makes_input_gradient(action.op) ? stage.backward_collectives
                                                                 : Nanoseconds{0};
    const Nanoseconds own = action_time(action, costs, last(action)) - hidden;
    compute += own, waiting += hidden;
    alone = std::max(alone, longer(own) + hidden);
  }
  return std::max({longer(compute), waiting, alone});
}

}  // namespace pfeife
