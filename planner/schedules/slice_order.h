// The order in which a rank takes the slices of its microbatches. Shared by all families that cut
// the sequence.
//
//  1. Forwards: slice k of microbatch m is the (m S + k)-th, so each finds the keys and values of
//  those before it.
//  2. Backwards: the i-th is slice S - 1 - i mod S of microbatch i div S, as every slice but the
//  last waits for the gradients that come from the one after it.
//  3. With V stages a rank both go in groups of `group` slices, each through all stages of the
//  rank.
//  4. `warm_up` forwards, then one forward and one backward in turn, then backwards.
#pragma once

#include <cstddef>

#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// Makes the row of a rank. `warm_up` is cut at the number of its forwards.
std::vector<Cell> sliced_row(const ScheduleSpec& spec, std::size_t rank, std::size_t warm_up,
                             std::size_t group);

}  // namespace pfeife
