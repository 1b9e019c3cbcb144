#include "planner/search/orders/row_memory.h"

#include <algorithm>

#include "planner/cost/estimate/memory.h"

namespace pfeife {

RowMemory::Held RowMemory::during(const Progress& done, const Received& received, std::size_t stage,
                                  Op op) {
  const std::size_t rank = placement_.rank_of_stage[stage].index();
  const auto action = 1 + kFewStages * static_cast<std::size_t>(op) + stage;
  const auto [at, added] = known_.try_emplace(key(done, received, rank, action));
  if (!added) return at->second;
  const StageProgress& of = done[stage];
  const StageId id{stage};
  const MicrobatchId next_backward{std::size_t{of.backward}};
  switch (op) {
    case Op::Forward:
      at->second = look(done, received, rank, {forward(id, MicrobatchId{std::size_t{of.forward}})});
      break;
    case Op::BackwardInput:
      at->second = look(done, received, rank, {backward_input(id, next_backward)});
      break;
    case Op::BackwardWeight:
      at->second =
          look(done, received, rank, {backward_weight(id, MicrobatchId{std::size_t{of.weight}})});
      break;
    default:
      at->second = look(done, received, rank, {backward(id, next_backward)});
      if (of.whole) break;  // else as much as I and W one after the other, too
      const Held parts =
          look(done, received, rank,
               {backward_input(id, next_backward), backward_weight(id, next_backward)});
      at->second.most = std::max(at->second.most, parts.most);
  }
  return at->second;
}

std::int64_t RowMemory::before(const Progress& done, const Received& received, std::size_t rank) {
  const auto [at, added] = known_.try_emplace(key(done, received, rank, 0));
  if (added) at->second = look(done, received, rank, {});
  return at->second.most;
}

std::uint64_t RowMemory::key(const Progress& done, const Received& received, std::size_t rank,
                             std::size_t action) const {
  std::uint64_t key = action * kFewRanks + rank;
  for (std::size_t s = 0; s < costs_.stages.size(); ++s)
    if (placement_.rank_of_stage[s].index() == rank)
      key = (key << 7) + static_cast<std::uint64_t>(done[s].forward << 5 | done[s].backward << 3 |
                                                    done[s].weight << 1 | done[s].whole);
  for (std::size_t p = 0; p < costs_.pairs.size(); ++p)
    if (crosses(costs_.pairs[p])) key = (key << 2) + received[p];
  return key;
}

void RowMemory::add_sends(StageId stage, MicrobatchId microbatch, Direction direction,
                          std::vector<Cell>& row) const {
  for (const StagePair& pair : costs_.pairs) {
    if (!crosses(pair)) continue;
    if (direction == Direction::Forward && pair.from == stage)
      row.emplace_back(send(stage, pair.to, microbatch, direction));
    if (direction == Direction::Backward && pair.to == stage && pair.has_gradient)
      row.emplace_back(send(stage, pair.from, microbatch, direction));
  }
}

void RowMemory::add_forwards(const Progress& done, const Received& received, std::size_t rank,
                             std::vector<Cell>& row) const {
  for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
    const StageId stage{s};
    if (placement_.rank(stage).index() != rank) continue;
    for (std::size_t p = 0; p < costs_.pairs.size(); ++p)
      if (costs_.pairs[p].to == stage && crosses(costs_.pairs[p]))
        for (std::size_t m = 0; m < received[p]; ++m)
          row.emplace_back(recv(stage, costs_.pairs[p].from, MicrobatchId{m}, Direction::Forward));
    for (std::size_t m = 0; m < done[s].forward; ++m) {
      row.emplace_back(forward(stage, MicrobatchId{m}));
      add_sends(stage, MicrobatchId{m}, Direction::Forward, row);
    }
  }
}

void RowMemory::add_backwards(const Progress& done, const Received& received, std::size_t rank,
                              std::vector<Cell>& row) const {
  for (std::size_t s = costs_.stages.size(); s-- > 0;) {
    const StageId stage{s};
    if (placement_.rank(stage).index() != rank) continue;
    for (std::size_t p = 0; p < costs_.pairs.size(); ++p)
      if (costs_.pairs[p].from == stage && crosses(costs_.pairs[p]) && costs_.pairs[p].has_gradient)
        for (std::size_t m = 0; m < received[p]; ++m)
          row.emplace_back(recv(stage, costs_.pairs[p].to, MicrobatchId{m}, Direction::Backward));
    for (std::size_t m = 0; m < done[s].backward; ++m) {
      row.emplace_back(done[s].whole ? backward(stage, MicrobatchId{m})
                                     : backward_input(stage, MicrobatchId{m}));
      add_sends(stage, MicrobatchId{m}, Direction::Backward, row);
    }
    for (std::size_t m = 0; m < done[s].weight && !done[s].whole; ++m)
      row.emplace_back(backward_weight(stage, MicrobatchId{m}));
  }
}

RowMemory::Held RowMemory::look(const Progress& done, const Received& received, std::size_t rank,
                                const std::vector<Action>& actions) const {
  Schedule lowered;
  lowered.rows.resize(placement_.ranks());
  std::vector<Cell>& row = lowered.rows[rank];
  add_forwards(done, received, rank, row);
  add_backwards(done, received, rank, row);
  const std::size_t before = row.size();
  for (const Action& action : actions) row.emplace_back(action);
  const std::size_t after = row.size();
  if (!actions.empty() && actions.back().op != Op::BackwardWeight)
    add_sends(actions.back().stage, *actions.back().microbatch,
              actions.back().op == Op::Forward ? Direction::Forward : Direction::Backward, row);
  const MemoryCurve curve = memory(lowered, RankId{rank}, costs_, placement_);
  const auto level = [&](std::size_t cells) {
    return cells == 0 ? curve.fixed : curve.steps[cells - 1].after;
  };
  Bytes most = level(before);
  for (std::size_t k = before; k < after; ++k) most = std::max(most, curve.steps[k].during);
  return {most.value, (level(after) - level(row.size())).value};
}

}  // namespace pfeife
