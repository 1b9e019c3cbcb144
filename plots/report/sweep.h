// The charts of a sweep: what changes along an axis of the experiment, a line a schedule.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife::plots {

/// Samples/s, bubble, gap and peak memory over the key that has most values, a line a plan; a small
/// picture for each combination of the other keys, all of a figure to one scale. The bound and the
/// memory limit are dashed; a hollow mark does not fit. "" unless two cases differ in a number.
std::string sweep_charts(const std::vector<CaseRecord>& cases);

}  // namespace pfeife::plots
