// Orders that repeat one building block: every microbatch goes through the stages in the same
// rhythm, one rhythm behind the microbatch before it. How far apart a microbatch's passes are says
// how much a rank holds.
//
// Source: Qi, Wan et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, sec. 3.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "planner/schedules/order_model.h"

namespace pfeife {

/// Where the passes of a microbatch lie on two stages a rank in the shape of a V, in slots of one
/// pass. F on its way down the ranks, and I on its way down, reach the next rank `down` slots
/// later; on their way up, one slot later. At the ends of the ranks they turn.
struct BuildingBlock {
  static constexpr std::size_t kPeriod = 6;  ///< slots from a microbatch to the next: F, I, W twice

  std::size_t down = 1;
  /// Slots from F of stage D - 1 to that of D, from the last F to the first I, and from I of stage
  /// D to that of D - 1.
  std::array<std::size_t, 3> turns{1, 1, 1};

  /// The order of `microbatches` on `ranks`: F and I in the block's rhythm, W oldest first in the
  /// slots that are left. nullopt where two passes of a rank fall on the same slot.
  std::optional<Order> repeated(std::size_t ranks, std::size_t microbatches) const;
};

/// V-Min and V-Half, with the earliest second turn at which no two passes fall on the same slot:
/// about a third and a half of the activations of 1F1B.
BuildingBlock v_min_block(std::size_t ranks);
BuildingBlock v_half_block(std::size_t ranks);

/// All with the same `down` on every rank that can be repeated, those with less in flight first.
std::vector<BuildingBlock> building_blocks(std::size_t ranks);

}  // namespace pfeife
