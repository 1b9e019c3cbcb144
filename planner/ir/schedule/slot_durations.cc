// Times and bytes of a DependencyGraph's slots under the costs of a partition.
#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/action_time.h"
#include "planner/ir/schedule/dependency_graph.h"

namespace pfeife {
namespace {

/// The pair a transfer slot's SEND belongs to.
const StagePair& pair_of(const DurationSlot& slot, const StageCosts& costs) {
  const Action& sent = slot.parts[0];
  const bool onward = sent.direction == Direction::Forward;
  const StagePair* pair = find_pair(costs, onward ? sent.stage : *sent.peer,
                                    onward ? *sent.peer : sent.stage, sent.microbatch);
  PFEIFE_CHECK(pair != nullptr, to_string(sent), " has no cost");
  return *pair;
}

}  // namespace

std::vector<Nanoseconds> slot_durations(std::span<const DurationSlot> slots,
                                        const StageCosts& costs) {
  std::vector<Nanoseconds> durations;
  durations.reserve(slots.size());
  for (const DurationSlot& slot : slots) {
    Nanoseconds time{0};
    if (slot.kind == TaskKind::Transfer) {
      const StagePair& pair = pair_of(slot, costs);
      time = slot.parts[0].direction == Direction::Forward ? pair.forward_time : pair.backward_time;
    } else if (slot.kind == TaskKind::Reduction && !slot.parts.empty()) {
      const Action& first = slot.parts.front();
      if (is_head_collective(first.op)) {
        time = costs.head.value().time(first.op);
      } else if (first.op == Op::ReduceNorm) {
        time = costs.norm.value_or(Nanoseconds{0});
      } else {
        const ReplicaReduction& of = costs.replicas[first.stage.index()];
        time = slot.parts.size() > 1 ? of.beside : of.behind;
      }
    } else if (slot.kind == TaskKind::Reduction) {
      for (const StageReduction& reduction : costs.reductions)
        if (std::ranges::binary_search(slot.stages, reduction.stages.front()))
          time += reduction.time;
    } else {
      const auto last = [](const Action& part) {
        return part.microbatch && part.microbatch->slices == 1;
      };
      time = slot.parts.size() > 1 ? side_by_side_time(slot.parts, costs, last)
                                   : action_time(slot.parts[0], costs, last(slot.parts[0]));
    }
    durations.push_back(time);
  }
  return durations;
}

Bytes slot_bytes(const DurationSlot& slot, const StageCosts& costs) {
  if (slot.kind != TaskKind::Transfer) return Bytes{0};
  const StagePair& pair = pair_of(slot, costs);
  return slot.parts[0].direction == Direction::Forward ? pair.bytes : pair.gradient_bytes;
}

}  // namespace pfeife
