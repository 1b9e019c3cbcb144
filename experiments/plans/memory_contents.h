// What fills a rank's memory at its peak, by the rule of planner/cost/estimate/memory.h.
#pragma once

#include <vector>

#include "planner/ir/result/memory_contents.h"
#include "planner/ir/result/plan.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// [rank] at the first cell where the rank's memory is at its highest. Each term is what the memory
/// rule gives less with it than without it, in the order of MemoryContents from the last to the
/// first, so that the terms add up to the plan's peak: a storage that several terms share counts
/// for the first of them. The plan's schedule must be lowered. `copies`: [stage] what of `saved` is
/// autocast's copies of parameters; empty = nothing.
std::vector<MemoryContents> memory_contents(const Plan& plan, const StageCosts& costs,
                                            const std::vector<Bytes>& copies = {});

}  // namespace pfeife
