// The order in which a rank takes its stages and microbatches, and the pattern one forward, one
// backward. Shared by all families that interleave the stages of a rank.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// One forward or backward of a rank: its v-th stage (from 0), microbatch b.
struct Visit {
  std::size_t loop = 0;
  std::size_t microbatch = 0;
};

/// Microbatches in groups of `group` (the last may be short); each group passes all
/// `stages_per_rank` stages of the rank before the next one starts, forwards from the first stage
/// to the last.
std::vector<Visit> forward_visits(std::size_t microbatches, std::size_t stages_per_rank,
                                  std::size_t group);
/// The same groups, from the last stage to the first.
std::vector<Visit> backward_visits(std::size_t microbatches, std::size_t stages_per_rank,
                                   std::size_t group);

/// The rank's v-th stage under round-robin placement: v D + r.
inline StageId dealt_stage(std::size_t loop, std::size_t rank, std::size_t ranks) {
  return StageId{loop * ranks + rank};
}

/// Appends `count` idle cells; none if negative.
void append_idle(std::vector<Cell>& row, std::ptrdiff_t count);

}  // namespace pfeife
