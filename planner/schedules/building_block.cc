#include "planner/schedules/building_block.h"

#include <algorithm>
#include <numeric>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::size_t kLongestTurn = BuildingBlock::kPeriod;

/// Slot of each stage's F and I of the first microbatch.
struct Slots {
  std::vector<std::size_t> forward, input;  // [stage]
};

Slots slots_of(const BuildingBlock& block, std::size_t ranks) {
  const std::size_t stages = 2 * ranks;
  Slots slots{std::vector<std::size_t>(stages, 0), std::vector<std::size_t>(stages, 0)};
  for (std::size_t s = 1; s < stages; ++s)
    slots.forward[s] = slots.forward[s - 1] + (s < ranks    ? block.down
                                               : s == ranks ? block.turns[0]
                                                            : 1);
  slots.input[stages - 1] = slots.forward[stages - 1] + block.turns[1];
  for (std::size_t s = stages - 1; s-- > 0;)
    slots.input[s] = slots.input[s + 1] + (s >= ranks       ? block.down
                                           : s == ranks - 1 ? block.turns[2]
                                                            : 1);
  return slots;
}

/// A pass of a rank, of the first microbatch.
struct Pass {
  std::size_t slot = 0;
  Turn turn;
};
std::array<Pass, 4> passes_of(const Slots& slots, std::size_t rank) {
  const std::size_t deep = slots.forward.size() - 1 - rank;
  const auto turn = [](Part part, std::size_t stage) {
    return Turn{part, static_cast<std::uint32_t>(stage)};
  };
  return {Pass{slots.forward[rank], turn(Part::Forward, rank)},
          Pass{slots.forward[deep], turn(Part::Forward, deep)},
          Pass{slots.input[deep], turn(Part::Input, deep)},
          Pass{slots.input[rank], turn(Part::Input, rank)}};
}

bool can_repeat(const Slots& slots) {
  for (std::size_t r = 0; r < slots.forward.size() / 2; ++r) {
    std::array<bool, BuildingBlock::kPeriod> taken{};
    for (const Pass& pass : passes_of(slots, r))
      if (std::exchange(taken[pass.slot % BuildingBlock::kPeriod], true)) return false;
  }
  return true;
}

/// Slots between F and I of a microbatch, over all stages: what is in flight, all ranks together.
std::size_t lifespan(const BuildingBlock& block, std::size_t ranks) {
  const Slots slots = slots_of(block, ranks);
  return std::accumulate(slots.input.begin(), slots.input.end(), std::size_t{0}) -
         std::accumulate(slots.forward.begin(), slots.forward.end(), std::size_t{0});
}

BuildingBlock with_earliest_turn(BuildingBlock block, std::size_t ranks) {
  while (!can_repeat(slots_of(block, ranks))) {
    ++block.turns[1];
    PFEIFE_CHECK(block.turns[1] <= kLongestTurn, "no turn lets the passes of ", ranks,
                 " ranks fall on slots of their own");
  }
  return block;
}

}  // namespace

std::optional<Order> BuildingBlock::repeated(std::size_t ranks, std::size_t microbatches) const {
  const Slots slots = slots_of(*this, ranks);
  if (!can_repeat(slots)) return std::nullopt;
  Order order(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    std::vector<Pass> passes;
    for (const Pass& first : passes_of(slots, r))
      for (std::size_t b = 0; b < microbatches; ++b)
        passes.push_back({first.slot + b * kPeriod, first.turn});
    std::ranges::sort(passes, {}, &Pass::slot);
    std::size_t weights = 0;                 // done
    std::vector<std::uint32_t> with_weight;  // stages, in the order of their I
    const auto weights_until = [&](std::size_t free) {
      for (; free > 0 && weights < with_weight.size(); --free)
        order[r].push_back({Part::Weight, with_weight[weights++]});
    };
    std::size_t slot = passes.front().slot;
    for (const Pass& pass : passes) {
      weights_until(pass.slot - slot);
      order[r].push_back(pass.turn);
      if (pass.turn.part == Part::Input) with_weight.push_back(pass.turn.stage);
      slot = pass.slot + 1;
    }
    weights_until(with_weight.size());
  }
  return order;
}

BuildingBlock v_min_block(std::size_t ranks) {
  return with_earliest_turn({.down = 1, .turns = {1, 1, 1}}, ranks);
}

BuildingBlock v_half_block(std::size_t ranks) {
  return with_earliest_turn({.down = 2, .turns = {1, 1, 2}}, ranks);
}

std::vector<BuildingBlock> building_blocks(std::size_t ranks) {
  std::vector<BuildingBlock> blocks;
  for (std::size_t down = 1; down < BuildingBlock::kPeriod; ++down)
    for (std::size_t first = 1; first <= kLongestTurn; ++first)
      for (std::size_t second = 1; second <= kLongestTurn; ++second)
        for (std::size_t third = 1; third <= kLongestTurn; ++third)
          if (const BuildingBlock block{down, {first, second, third}};
              can_repeat(slots_of(block, ranks)))
            blocks.push_back(block);
  std::ranges::stable_sort(blocks, {},
                           [&](const BuildingBlock& block) { return lifespan(block, ranks); });
  return blocks;
}

}  // namespace pfeife
