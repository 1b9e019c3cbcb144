// Weights of rows that bound the step from below as well as any: a game of rows against mixtures of
// cuts, which the cuts that answer best join one by one.
#pragma once

#include <vector>

#include "planner/search/bound/any_order_rows.h"

namespace pfeife {

/// [row] whole numbers, such that all sums of AnyOrderRows::minimum are exact; their smallest
/// weighted mean over all cuts is nearly as large as can be. There are cuts.
std::vector<double> whole_weights(AnyOrderRows& rows);

}  // namespace pfeife
