#include "planner/schedules/order_model.h"

#include <algorithm>
#include <limits>

#include "planner/schedules/microbatch_order.h"

namespace pfeife {

OrderModel::OrderModel(const StageCosts& costs, const Placement& placement,
                       std::size_t microbatches_, const std::vector<Bytes>& room_)
    : ranks(placement.ranks()),
      stages(placement.stages()),
      microbatches(microbatches_),
      stages_of_rank(placement.ranks()),
      room(placement.ranks(), std::numeric_limits<std::int64_t>::max()),
      tail(step_tails(costs, placement)) {
  for (std::size_t r = 0; r < room_.size(); ++r) room[r] = room_[r].value;
  for (auto& of_stage : waits) of_stage.resize(stages);
  for (auto& of_stage : wakes) of_stage.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    const StageCost& cost = costs.stages[s];
    const std::size_t rank = placement.rank_of_stage[s].index();
    rank_of_stage.push_back(static_cast<std::uint32_t>(rank));
    stages_of_rank[rank].push_back(static_cast<std::uint32_t>(s));
    duration[0].push_back(cost.forward.count());
    duration[1].push_back(cost.backward_input.count());
    duration[2].push_back(cost.backward_weight.count());
    saved.push_back(cost.saved.value);
    weight_saved.push_back(cost.weight_saved.value);
  }
  const auto wait = [&](Part part, std::size_t stage, std::size_t source, std::int64_t delay) {
    const auto at = static_cast<std::size_t>(part);
    waits[at][stage].push_back({static_cast<std::uint32_t>(source), delay});
    wakes[at][source].push_back({static_cast<std::uint32_t>(stage), delay});
  };
  for (std::size_t s = 0; s + 1 < stages; ++s) {
    const auto* pair = find_pair(costs, StageId{s}, StageId{s + 1});
    wait(Part::Forward, s + 1, s, pair ? pair->forward_time.count() : 0);
    wait(Part::Input, s, s + 1, pair ? pair->backward_time.count() : 0);
  }
  for (const StagePair& pair : costs.pairs) {
    if (pair.to.index() == pair.from.index() + 1) continue;
    wait(Part::Forward, pair.to.index(), pair.from.index(), pair.forward_time.count());
    if (pair.has_gradient)
      wait(Part::Input, pair.from.index(), pair.to.index(), pair.backward_time.count());
  }
}

std::vector<std::int64_t> step_tails(const StageCosts& costs, const Placement& placement) {
  std::vector<std::int64_t> tails(placement.ranks(), 0), steps = tails;
  for (std::size_t s = 0; s < placement.stages(); ++s) {
    const std::size_t rank = placement.rank_of_stage[s].index();
    tails[rank] += step_of(costs, placement, StageId{s}).count();
    steps[rank] += costs.stages[s].optimizer.count();
  }
  if (!costs.norm) return tails;
  const std::int64_t behind_all = costs.norm->count() + std::ranges::max(steps);
  for (std::size_t r = 0; r < tails.size(); ++r) tails[r] += behind_all - steps[r];
  return tails;
}

std::int64_t OrderModel::growth(Turn turn) const {
  switch (turn.part) {
    case Part::Forward:
      return saved[turn.stage];
    case Part::Input:
      return weight_saved[turn.stage] - saved[turn.stage];
    default:
      return -weight_saved[turn.stage];
  }
}

std::optional<Order> order_of(const Schedule& compute_only) {
  Order order(compute_only.ranks());
  std::vector<std::array<std::int32_t, kParts>> done(stage_count(compute_only));
  bool in_order = true;
  for (std::size_t r = 0; r < order.size(); ++r) {
    const auto add = [&](Part part, const Action& action) {
      auto& count = done[action.stage.index()][static_cast<std::size_t>(part)];
      in_order = in_order && action.microbatch && action.microbatch->value == count;
      ++count;
      order[r].push_back({part, static_cast<std::uint32_t>(action.stage.index())});
    };
    for (const Cell& cell : compute_only.rows[r])
      for_each_action(cell, [&](const Action& action) {
        if (action.op == Op::Forward) add(Part::Forward, action);
        if (makes_input_gradient(action.op)) add(Part::Input, action);
        if (makes_weight_gradient(action.op)) add(Part::Weight, action);
      });
  }
  if (!in_order) return std::nullopt;
  return order;
}

Schedule schedule_of(const Order& order) {
  Schedule schedule;
  for (const auto& row : order) {
    auto& cells = schedule.rows.emplace_back();
    std::vector<std::array<std::size_t, kParts>> done;
    for (const Turn turn : row) {
      if (turn.stage >= done.size()) done.resize(turn.stage + 1);
      const StageId stage = StageId{turn.stage};
      const MicrobatchId b = MicrobatchId{done[turn.stage][static_cast<std::size_t>(turn.part)]++};
      cells.emplace_back(turn.part == Part::Forward ? forward(stage, b)
                         : turn.part == Part::Input ? backward_input(stage, b)
                                                    : backward_weight(stage, b));
    }
  }
  return schedule;
}

std::int64_t most_held(const OrderModel& model, const Order& order, std::size_t rank) {
  std::int64_t held = 0, most = 0;
  for (const Turn turn : order[rank]) most = std::max(most, held += model.growth(turn));
  return most;
}

bool fits(const OrderModel& model, const Order& order, std::size_t rank) {
  return most_held(model, order, rank) <= model.room[rank];
}

}  // namespace pfeife
