// Bounds that hold for any order of the actions and take no search: what the work and its
// dependencies need alone.
#pragma once

#include "planner/search/search.h"

namespace pfeife {

/// Time (ns) that no plan of the listed schedules goes below, nor one of any other order of the
/// same placements: the largest of the bounds below and of any_order_bound (built_orders.h).
double work_bound(const Problem& problem);

/// However layers are dealt to the devices of the problem: with weights y of the devices that add
/// up to 1, the slowest is not faster than the weighted mean, in which each layer counts at its
/// cheapest device.
double shared_work_bound(const Problem& problem, std::size_t microbatches);

/// One microbatch: the longest way forward through the layers to one of them and, where values have
/// gradients, back; every layer on its fastest device, transfers and weight gradients not at all.
double one_microbatch_bound(const Problem& problem);

}  // namespace pfeife
