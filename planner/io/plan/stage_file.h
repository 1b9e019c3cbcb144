// stages.csv: what each stage of a plan costs, so that others can work out its memory and its time.
//
// Four tables, an empty line between them: a line a stage; a line for each value that leaves its
// stage and each stage that reads it; a line for each pair of stages between which messages go
// (with `has_gradient` where a gradient of no bytes comes back; else one comes back where it has
// bytes); a line for each reduction of shared gradients, and for each stage's of replicas. Stages
// have further columns where some stage has collectives or offloads. Tables of one figure follow:
// whether the two ways to the host take turns (`one_copy_engine`), `overlap_factor`, and what pairs
// of actions side by side take. If the
// microbatch that a stage runs forward last is not recomputed and others are, the first two tables
// follow once more, of that one; of sliced microbatches, the first three for each slice, after its
// number. Bytes and nanoseconds. What is held when: planner/cost/estimate/memory.h.
#pragma once

#include <string>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

std::string stages_text(const StageCosts& costs, const Placement& placement);

}  // namespace pfeife
