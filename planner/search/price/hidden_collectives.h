// Which schedules hide collectives: what they take is less than the sum of their layers' times.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// Whether the schedule has F and B side by side, and the layers have what they hide.
bool hides_collectives(const Layers& layers, const ScheduleSpec& spec);
/// Some schedule of the problem does. A bound of them all then counts what is computed alone
/// (without_collectives).
bool hides_collectives(const Problem& problem);

}  // namespace pfeife
