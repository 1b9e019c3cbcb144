// Bounds that hold for any order of the actions and take no search: what the work and its
// dependencies need alone.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// Time (ns) that no plan of the listed schedules goes below, nor one of any other order of the
/// same placements: of slices sliced_bound() (slice_bound.h), else the largest of the bound below,
/// of AnyOrder (any_order.h) and of one_microbatch_bound (segment_bound.h). Where schedules hide
/// collectives, of their listed orders. Where ranks share the output layer, the work of all layers
/// and shares, of the slowest stage and its share, or the bound of the layers that are not divided.
double work_bound(const Problem& problem);

/// However layers are dealt to the devices of the problem: with weights y of the devices that add
/// up to 1, the slowest is not faster than the weighted mean, in which each layer counts at its
/// cheapest device.
double shared_work_bound(const Problem& problem, std::size_t microbatches);

/// Time (ns) that no plan goes below, whichever of the problem's devices runs which rank: of
/// devices of one kind work_bound() of a problem whose transfers take no time, else the largest of
/// the bounds that know no ranks.
double any_devices_bound(const Problem& problem);

}  // namespace pfeife
