// The chart of predicted over measured step times, of all cases at once.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife::plots {

/// A mark for each measured plan and engine: hollow circles estimated, filled squares simulated;
/// across each the p5 to p95 of its measured steps, thick the interval of their median (rounds);
/// dashed the line of no error. Both axes alike, in one unit; logarithmic where the times differ by
/// 50 and more. "" if nothing was measured.
std::string accuracy_scatter(const std::vector<CaseRecord>& cases);

}  // namespace pfeife::plots
