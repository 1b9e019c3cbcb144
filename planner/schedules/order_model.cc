#include "planner/schedules/order_model.h"

#include <algorithm>
#include <limits>

#include "planner/schedules/microbatch_order.h"

namespace pfeife {

/// Which microbatch a part with that count is of; with slices, which slice.
static MicrobatchId microbatch_of(Part part, std::size_t count, std::size_t slices) {
  const std::size_t k = slices == 1 ? 0 : count % slices;
  return MicrobatchId{part == Part::Forward ? count : count - k + slices - 1 - k,
                      static_cast<std::int32_t>(slices)};
}

OrderModel::OrderModel(const StageCosts& costs, const Placement& placement,
                       std::size_t whole_microbatches, const std::vector<Bytes>& room_)
    : ranks(placement.ranks()),
      stages(placement.stages()),
      slices(std::max<std::size_t>(1, costs.slices.size())),
      period(slices > 1 || costs.kinds.empty() ? slices : whole_microbatches),
      microbatches(slices * whole_microbatches),
      stages_of_rank(placement.ranks()),
      room(placement.ranks(), std::numeric_limits<std::int64_t>::max()),
      tail(step_tails(costs, placement)) {
  for (std::size_t r = 0; r < room_.size(); ++r) room[r] = room_[r].value;
  // Whose figures count: a slice, or a microbatch where these differ.
  const auto own = [&](Part part, std::size_t count) {
    return slices == 1 && costs.kinds.empty() ? std::nullopt
                                              : std::optional(microbatch_of(part, count, slices));
  };
  for (auto& of_stage : waits) of_stage.resize(stages * period);
  for (auto& of_stage : wakes) of_stage.resize(stages * period);
  for (std::size_t s = 0; s < stages; ++s) {
    const std::size_t rank = placement.rank_of_stage[s].index();
    rank_of_stage.push_back(static_cast<std::uint32_t>(rank));
    stages_of_rank[rank].push_back(static_cast<std::uint32_t>(s));
  }
  for (std::size_t s = 0; s < stages; ++s)
    for (std::size_t count = 0; count < period; ++count) {
      const auto cost = [&](Part part) -> const StageCost& {
        const auto microbatch = own(part, count);
        return (microbatch ? part_of(costs, *microbatch)->stages : costs.stages)[s];
      };
      const StageCost& there = cost(Part::Forward);
      const StageCost& back = cost(Part::Input);
      duration[0].push_back(there.forward.count());
      duration[1].push_back(back.backward_input.count());
      duration[2].push_back(back.backward_weight.count());
      growth[0].push_back(there.saved.value);
      growth[1].push_back(back.weight_saved.value - back.saved.value);
      growth[2].push_back(-back.weight_saved.value);
    }
  // Gradients of keys and values, from the first I of their microbatch to their own.
  for (std::size_t s = 0; s < stages && slices > 1; ++s)
    for (std::size_t count = 1; count < slices; ++count) {
      const std::int64_t bytes = part_of(costs, *own(Part::Input, count))->key_gradients[s].value;
      growth[1][at(s, 0)] += bytes, growth[1][at(s, count)] -= bytes;
    }
  for (std::size_t count = 0; count < period; ++count) {
    const auto wait = [&](Part part, std::size_t stage, std::size_t source, std::int64_t delay) {
      const auto p = static_cast<std::size_t>(part);
      if (rank_of_stage[stage] == rank_of_stage[source]) delay = 0;  // nothing is sent
      waits[p][at(stage, count)].push_back({static_cast<std::uint32_t>(source), delay});
      wakes[p][at(source, count)].push_back({static_cast<std::uint32_t>(stage), delay});
    };
    const std::optional<MicrobatchId> there = own(Part::Forward, count),
                                      back = own(Part::Input, count);
    for (std::size_t s = 0; s + 1 < stages; ++s) {
      const StagePair* const up = find_pair(costs, StageId{s}, StageId{s + 1}, there);
      const StagePair* const down = find_pair(costs, StageId{s}, StageId{s + 1}, back);
      wait(Part::Forward, s + 1, s, up ? up->forward_time.count() : 0);
      wait(Part::Input, s, s + 1, down ? down->backward_time.count() : 0);
    }
    for (const StagePair& pair : pairs_of(costs, there))
      if (pair.to.index() != pair.from.index() + 1)
        wait(Part::Forward, pair.to.index(), pair.from.index(), pair.forward_time.count());
    for (const StagePair& pair : pairs_of(costs, back))
      if (pair.to.index() != pair.from.index() + 1 && pair.has_gradient)
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

std::optional<Order> order_of(const Schedule& compute_only) {
  Order order(compute_only.ranks());
  std::vector<std::array<std::size_t, kParts>> done(stage_count(compute_only));
  const std::size_t slices = slice_count(compute_only);
  bool in_order = true;
  for (std::size_t r = 0; r < order.size(); ++r) {
    const auto add = [&](Part part, const Action& action) {
      auto& count = done[action.stage.index()][static_cast<std::size_t>(part)];
      in_order = in_order && action.microbatch == microbatch_of(part, count, slices);
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

Schedule schedule_of(const Order& order, std::size_t slices) {
  Schedule schedule;
  for (const auto& row : order) {
    auto& cells = schedule.rows.emplace_back();
    std::vector<std::array<std::size_t, kParts>> done;
    for (const Turn turn : row) {
      if (turn.stage >= done.size()) done.resize(turn.stage + 1);
      const StageId stage = StageId{turn.stage};
      const std::size_t count = done[turn.stage][static_cast<std::size_t>(turn.part)]++;
      const MicrobatchId b = microbatch_of(turn.part, count, slices);
      cells.emplace_back(turn.part == Part::Forward ? forward(stage, b)
                         : turn.part == Part::Input ? backward_input(stage, b)
                                                    : backward_weight(stage, b));
    }
  }
  return schedule;
}

std::int64_t most_held(const OrderModel& model, const Order& order, std::size_t rank) {
  std::int64_t held = 0, most = 0;
  std::vector<std::array<std::uint32_t, kParts>> done(model.period == 1 ? 0 : model.stages);
  for (const Turn turn : order[rank]) {
    const auto part = static_cast<std::size_t>(turn.part);
    const std::size_t count = done.empty() ? 0 : done[turn.stage][part]++;
    most = std::max(most, held += model.growth[part][model.at(turn.stage, count)]);
  }
  return most;
}

bool fits(const OrderModel& model, const Order& order, std::size_t rank) {
  return most_held(model, order, rank) <= model.room[rank];
}

}  // namespace pfeife
