// What no step goes below where transfers share links or queue up, whatever the order of actions
// and messages.
//
// All that a step sends over a link goes through it one byte after the other, and a queue has one
// message under way: not before the first message can have come there, and what must follow the
// last one comes after it. Each is a row like those of any_order_rows.h, a sum of one term for each
// stage and each cut, so that all kinds have weights together. Counted is what neighbouring stages
// surely send each other: for links on the narrowest of its way, latency left out; for queues the
// whole time of the message.
#pragma once

#include "planner/search/bound/any_order_rows.h"

namespace pfeife {

/// Step time (ns) that no order of any kind goes below for any cuts (`linked`: of which each stage
/// sends the next one values and gets gradients back), with such links and queues. With listed
/// schedules, too: only the placement matters. Infinite: there are no cuts within memory.
double shared_links_bound(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                          const Semantics& semantics, bool linked = false);

/// The least of all listed schedules; 0 if none has cuts.
Nanoseconds shared_links_bound(const Problem& problem, const Semantics& semantics, bool linked);

/// The same whichever of the problem's devices runs which rank. The devices are dealt into the
/// parts that the slowest paths part which no chain of all of them avoids. At the end of the stages
/// are more ranks than a part has devices, so two neighbours there are of different parts. For each
/// two that may be, all else is as good as the best: transfers between other ranks take no time,
/// and between the two is the fastest path from one part to another. The bound is the least of
/// theirs, and of all ways to deal the kinds of devices to the ranks; where these are many, every
/// device is as fast as the fastest.
Nanoseconds any_devices_links_bound(const Problem& problem, const Semantics& semantics,
                                    bool linked);

}  // namespace pfeife
