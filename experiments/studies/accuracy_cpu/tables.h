// What came out, on standard output.
#pragma once

#include <vector>

#include "experiments/studies/accuracy_cpu/point.h"

namespace pfeife {

/// A line a point, then the totals of the predictions from both profiles: errors (predicted /
/// measured - 1), order of the plans, share of the steps inside the predicted ranges, memory.
void print_tables(const std::vector<Point>& points);

}  // namespace pfeife
