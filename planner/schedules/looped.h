// Pfeife's schedule family in closed form, for the two families that are made of it.
#pragma once

#include <optional>

#include "planner/schedules/family.h"

namespace pfeife {

/// The schedule of V stages a rank, loop batch B_l (default D) and prefetch of the point.
Schedule looped_schedule(const ScheduleSpec& spec);

/// Refuses a point whose order is cyclic, that is, one that no execution can finish.
std::optional<Refusal> refuse_cyclic(const ScheduleSpec& spec);

/// Scalar prefetches from 0 that make different schedules; all larger ones make the last of these.
std::size_t distinct_prefetches(const ScheduleSpec& spec);

}  // namespace pfeife
