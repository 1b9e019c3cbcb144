// What a search holds, said before it begins: from the sizes of what it keeps of each schedule.
#pragma once

#include <span>

#include "planner/ir/model/layers.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// Bytes that the search holds at once for these schedules, all of them together: what Program and
/// CutCosts keep of each, for as long as it lasts. Schedules with more stages than the model has
/// are nothing. Left out: bounds and trees, which budgets limit.
Bytes search_memory(const Layers& layers, std::span<const ScheduleSpec> schedules);

/// Bytes that a thread holds while it judges a plan of the schedule: the order, lowered, and its
/// dependency graph.
Bytes judging_memory(const ScheduleSpec& schedule);

/// Tasks of its dependency graph, at most.
std::size_t tasks_of(const ScheduleSpec& schedule);

/// Bytes of a plan with its lowered schedule and one trace; of its dependency graph.
Bytes plan_memory(const ScheduleSpec& schedule);
Bytes graph_memory(const ScheduleSpec& schedule);

}  // namespace pfeife
