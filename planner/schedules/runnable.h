// Whether the order of a compute-only chain schedule can be executed at all.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// The first action of a rank that can never run.
struct StuckCell {
  RankId rank;
  Action action;
};

/// Executes F and B (or I) of a chain of `stages` stages in row order, each as soon as its
/// neighbours' and those of its microbatch's slices before it are done; answers where the ranks
/// stop before their end. Empty = everything runs. `microbatches`: each slice counted. Linear.
std::vector<StuckCell> stuck_cells(const Schedule& schedule, std::size_t stages,
                                   std::size_t microbatches);

/// "rank 0 waits at 0B0, rank 1 waits at 1F2".
std::string describe(const std::vector<StuckCell>& stuck);

}  // namespace pfeife
