#include "planner/ir/schedule/stage_costs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "planner/ir/schedule/action_time.h"

namespace pfeife {

bool receives_alone(const StageValue& value, std::size_t i, const Placement& placement) {
  const RankId rank = placement.rank(value.to[i]);
  const auto here = [&](StageId stage) { return placement.rank(stage) == rank; };
  return !here(value.from) && std::ranges::count_if(value.to, here) == 1;
}

std::vector<Bytes> saved_alone(const std::vector<StageCost>& stages,
                               const std::vector<StageValue>& values, const Placement& placement) {
  std::vector<Bytes> alone;
  alone.reserve(stages.size());
  for (const StageCost& stage : stages) alone.push_back(stage.saved);
  for (const StageValue& value : values) {
    if (value.saved_by_sender) alone[value.from.index()] -= value.bytes;
    for (std::size_t i = 0; i < value.to.size(); ++i)
      if (value.saved_by_receiver[i] && !receives_alone(value, i, placement))
        alone[value.to[i].index()] -= value.bytes;
  }
  for (Bytes& bytes : alone) bytes = std::max(bytes, Bytes{0});
  return alone;
}

bool offloads(const StageCosts& costs) {
  return std::ranges::any_of(costs.stages,
                             [](const StageCost& stage) { return stage.offloaded > Bytes{0}; });
}

StageGraph stage_graph(const StageCosts& costs) {
  StageGraph graph;
  graph.stages = costs.stages.size();
  for (const StagePair& pair : costs.pairs)
    graph.edges.push_back({pair.from, pair.to, pair.has_gradient});
  for (const StageReduction& reduction : costs.reductions) graph.tied.push_back(reduction.stages);
  graph.replicas = !costs.replicas.empty();
  graph.last_apart = !costs.last.stages.empty();
  graph.one_copy_engine = costs.one_copy_engine;
  graph.head_barriers = costs.head ? costs.head->barriers : 0;
  graph.kind_of = costs.kind_of;
  graph.mode = costs.mode;
  return graph;
}

Nanoseconds SharedHead::time(Op collective) const {
  if (collective == Op::BroadcastHead) return broadcast;
  return collective == Op::ReduceShare ? after_share : after_rest;
}

Nanoseconds step_of(const StageCosts& costs, const Placement& placement, StageId stage) {
  const bool alone = placement.stages() == placement.ranks() && !costs.replicas.empty();
  return costs.stages[stage.index()].optimizer +
         (alone ? costs.replicas[stage.index()].behind : Nanoseconds{0});
}

const StageCosts::Slice* part_of(const StageCosts& costs, MicrobatchId microbatch) {
  if (microbatch.slices == 1) {
    if (costs.kinds.empty()) return nullptr;
    PFEIFE_CHECK(microbatch.index() < costs.kind_of.size(), "microbatch ", microbatch.value,
                 ", costs for ", costs.kind_of.size());
    return &costs.kinds[costs.kind_of[microbatch.index()]];
  }
  PFEIFE_CHECK(costs.slices.size() == static_cast<std::size_t>(microbatch.slices),
               microbatch.slices, " slices, costs for ", costs.slices.size());
  return &costs.slices[static_cast<std::size_t>(microbatch.slice())];
}

static const StageCosts::Slice* part_of(const StageCosts& costs,
                                        std::optional<MicrobatchId> microbatch) {
  return microbatch ? part_of(costs, *microbatch) : nullptr;
}

const std::vector<StagePair>& pairs_of(const StageCosts& costs,
                                       std::optional<MicrobatchId> microbatch) {
  const StageCosts::Slice* part = part_of(costs, microbatch);
  return part ? part->pairs : costs.pairs;
}

const StageCost& stage_cost(const StageCosts& costs, const Action& action, bool last) {
  if (const StageCosts::Slice* part = part_of(costs, action.microbatch))
    return part->stages[action.stage.index()];
  const bool apart = last && !costs.last.stages.empty();
  return (apart ? costs.last.stages : costs.stages)[action.stage.index()];
}

const StagePair* find_pair(const StageCosts& costs, StageId from, StageId to,
                           std::optional<MicrobatchId> microbatch) {
  const std::vector<StagePair>& pairs = pairs_of(costs, microbatch);
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), std::pair{from, to},
                                   [](const StagePair& pair, const auto& key) {
                                     return std::pair{pair.from, pair.to} < key;
                                   });
  const bool found = at != pairs.end() && at->from == from && at->to == to;
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

namespace {

void drop_backward(std::vector<StageCost>& stages, std::vector<StagePair>& pairs,
                   std::vector<StageValue>& values) {
  for (StageCost& stage : stages)
    stage = {.forward = stage.forward,
             .forward_collectives = stage.forward_collectives,
             .parameters = stage.parameters,
             .temporary = {.forward = stage.unkept_forward},
             .unkept_forward = stage.unkept_forward,
             .model_input = stage.model_input};
  for (StagePair& pair : pairs) {
    pair.gradient_bytes = Bytes{0}, pair.backward_time = Nanoseconds{0};
    pair.has_gradient = false;
  }
  for (StageValue& value : values) {
    value.gradient_bytes = Bytes{0};
    value.saved_by_sender = false;
    value.saved_by_receiver.assign(value.to.size(), false);
  }
}

}  // namespace

StageCosts without_backward(StageCosts costs) {
  costs.mode = Mode::Forward;
  drop_backward(costs.stages, costs.pairs, costs.values);
  for (std::vector<StageCosts::Slice>* parts : {&costs.slices, &costs.kinds})
    for (StageCosts::Slice& part : *parts) {
      drop_backward(part.stages, part.pairs, part.values);
      part.key_gradients.assign(part.key_gradients.size(), Bytes{0});
    }
  costs.reductions.clear(), costs.replicas.clear();
  costs.norm.reset(), costs.head.reset(), costs.last = {}, costs.side_by_side.clear();
  return costs;
}

Nanoseconds action_time(const Action& action, const StageCosts& costs, bool last) {
  static constexpr std::array<Nanoseconds StageCost::*, kTimeParts> kParts{
      &StageCost::forward,    &StageCost::backward_input, &StageCost::backward_weight,
      &StageCost::optimizer,  &StageCost::offload,        &StageCost::reload,
      &StageCost::head_share, &StageCost::head_rest};
  const StageCost& cost = stage_cost(costs, action, last);
  Nanoseconds time{0};
  for (unsigned left = operation(action.op).times; left != 0; left &= left - 1)
    time += cost.*kParts[static_cast<std::size_t>(std::countr_zero(left))];
  return time;
}

/// How long a forward beside a backward takes, where the costs have that.
static std::optional<Nanoseconds> pair_time(std::span<const Action> actions,
                                            const StageCosts& costs,
                                            const std::function<bool(const Action&)>& last) {
  if (actions.size() != 2) return std::nullopt;
  const bool turned = actions[1].op == Op::Forward;
  const Action &forward = actions[turned ? 1 : 0], &backward = actions[turned ? 0 : 1];
  if (forward.op != Op::Forward || part_of(costs, forward.microbatch) != nullptr)
    return std::nullopt;
  const bool whole = backward.op == Op::Backward;
  if (!whole && backward.op != Op::BackwardInput) return std::nullopt;
  const bool apart = last(backward) && !costs.last.stages.empty();
  for (const StageCosts::SideBySide& pair : apart ? costs.last.side_by_side : costs.side_by_side)
    if (pair.forward == forward.stage && pair.backward == backward.stage)
      return whole ? pair.with_backward : pair.with_input;
  return std::nullopt;
}

Nanoseconds side_by_side_time(std::span<const Action> actions, const StageCosts& costs,
                              const std::function<bool(const Action&)>& last) {
  if (const auto time = pair_time(actions, costs, last)) return *time;
  const auto longer = [&](Nanoseconds compute) {
    return Nanoseconds{std::llround(static_cast<double>(compute.count()) * costs.overlap_factor)};
  };
  Nanoseconds compute{0}, waiting{0}, alone{0};
  for (const Action& action : actions) {
    const StageCost& stage = stage_cost(costs, action, false);
    const std::optional<Direction> way = operation(action.op).passes;
    const Nanoseconds hidden = way == Direction::Forward    ? stage.forward_collectives
                               : way == Direction::Backward ? stage.backward_collectives
                                                            : Nanoseconds{0};
    const Nanoseconds own = action_time(action, costs, last(action)) - hidden;
    compute += own, waiting += hidden;
    alone = std::max(alone, longer(own) + hidden);
  }
  return std::max({longer(compute), waiting, alone});
}

}  // namespace pfeife
