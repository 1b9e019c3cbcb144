// A bound for schedules that cut sequences into slices, for any cuts and any order of their F and
// B.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// Time (ns) that no plan of the schedule, whose slices are more than one, goes below. Before a
/// rank's first action the first slice of a microbatch is through all ranks before it, and behind
/// its last one, a backward of a first slice, that slice goes back through them: with equal stages
/// and slices N (F + B) + (D - 1) (F + B) / S. Of families that split B, the slice goes back
/// through I alone, and a rank may do all its W meanwhile: way there + max(N (F + I) + way back, N
/// (F + I + W) + optimizer). Of several stages a rank, devices of several kinds and collectives
/// hidden in pairs of actions: shared_work_bound().
double sliced_bound(const Problem& problem, const ScheduleSpec& spec);

}  // namespace pfeife
