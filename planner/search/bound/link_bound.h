// What no step goes below where transfers share links, whatever the order of the actions.
//
// All that a step sends over a link goes through it one byte after the other: not before the first
// message can have come there, and what must follow the last one comes after it. That is a row like
// those of any_order_rows.h, a sum of one term for each stage and each cut, so that both kinds have
// weights together. Counted is what neighbouring stages surely send each other, on the narrowest
// link of its way, latency left out.
#pragma once

#include "planner/search/bound/any_order_rows.h"

namespace pfeife {

/// Step time (ns) that no order of any kind goes below for any cuts (`linked`: of which each stage
/// sends the next one values and gets gradients back), transfers sharing links. With listed
/// schedules, too: only the placement matters. Infinite: there are no cuts within memory.
double shared_links_bound(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                          bool linked = false);

/// The least of all listed schedules; 0 if none has cuts.
Nanoseconds shared_links_bound(const Problem& problem, bool linked);

}  // namespace pfeife
