// The second closing table: what was predicted against what was measured, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "planner/io/results/results.h"

namespace pfeife {

/// For each case a line a measured plan: step time and peak memory of each rank, estimated,
/// simulated, measured, and the errors (predicted / measured - 1); then the actions of the planned
/// one whose duration was furthest from the prediction. "" if nothing was measured. ASCII.
std::string accuracy_table(const std::vector<CaseRecord>& cases);

}  // namespace pfeife
