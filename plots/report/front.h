// The chart of time against memory: the plans between which a user may choose.
#pragma once

#include <string>

#include "plots/report/report.h"

namespace pfeife::plots {

/// Step time over largest peak memory: the front as steps, every point with its schedule. "" with
/// fewer than two points.
std::string front_chart(const CaseRecord& report_case);

}  // namespace pfeife::plots
