// Full backward or its two halves: passes over compute-only schedules.
#pragma once

#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// Joins every I that is followed at once by the W of the same stage and microbatch to one B.
Schedule merge_backward(const Schedule& schedule);
/// Splits every B, in overlaps too, into I and W side by side in the row.
Schedule split_backward(const Schedule& schedule);

}  // namespace pfeife
