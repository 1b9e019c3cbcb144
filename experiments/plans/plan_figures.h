// Figures of merit of an evaluated plan.
#pragma once

#include <vector>

#include "experiments/plans/evaluated_case.h"
#include "planner/ir/result/figures.h"
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

/// [stage] bytes that it keeps a microbatch as autocast's copies of parameters; empty = not known.
std::vector<Bytes> autocast_copies(const Evaluation& plan, const ModelWork* work);

/// [rank] What its memory is for: of what it reserves, where that is known, else of its peak.
std::vector<MemoryContents> memory_of(const Evaluation& plan, const ModelWork* work);

/// Figures of a plan of `evaluated` that is possible; what is of its step is of `trace` (nullptr =
/// left out). Utilization is of the peak that the case's precision has on each device, where all
/// list one.
PlanFigures figures_of(const Evaluation& plan, const EvaluatedCase& evaluated, const Trace* trace);

}  // namespace pfeife
