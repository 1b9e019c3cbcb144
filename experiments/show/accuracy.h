// The second closing table: what was predicted against what was measured, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "planner/io/results/results.h"

namespace pfeife {

/// A row a measured plan: its measured step, and the errors of estimate, simulation and peak memory
/// (predicted / measured - 1; of memory that of the rank that is furthest off). `verbose`: the
/// peaks of each rank and the actions whose duration was furthest from the prediction, too. "" if
/// nothing was measured. Plans measured in rounds: how well each median is known, and which of two
/// plans is faster. ASCII.
std::string accuracy_table(const std::vector<CaseRecord>& cases, std::size_t width = 80,
                           bool verbose = false);

}  // namespace pfeife
