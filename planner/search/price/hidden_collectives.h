// Which schedules hide collectives: what they take is less than the sum of their layers' times.
#pragma once

#include <functional>

#include "planner/search/problem.h"

namespace pfeife {

/// Whether the schedule has F and B side by side, and the layers have what they hide.
bool hides_collectives(const Layers& layers, const ScheduleSpec& spec);
/// Some schedule of the problem does. A search of them all then counts what is computed alone
/// (without_collectives), a bound what longest_side_by_side() does.
bool hides_collectives(const Problem& problem);

/// The largest of what `bound` says of problems whose schedules hide nothing and take no longer
/// than those of `problem`, which hide collectives, as they are listed.
///
/// A stage has n forwards that compute C and wait K each. u of them are alone in their cells and
/// take C
/// + K. The others are beside a backward, in cells as long as what both compute, or wait if that is
/// longer: at least the mean of the two with weights v and 1 - v. Together that is at least n (a C
/// + b K) with a = v + u/n (1 - v) and b = 1 - v + u/n v; likewise for backwards. Where one action
/// of a cell counts, the cell is at least its C + K. So layers of a C + b K take no longer, on a
/// rank and on any way through ranks that has one action of a cell. Where cells are priced step by
/// step (Layers::steps), a backward may hide collectives behind its own weight gradients, so that a
/// cell may be shorter than its backward by itself: u counts as 0 there. v = 1, 1/2, 0 are tried,
/// the first alone where each stage is recomputed: what runs again is computed in any case.
double longest_side_by_side(const Problem& problem,
                            const std::function<double(const Problem&)>& bound);

}  // namespace pfeife
