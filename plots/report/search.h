// The chart of a search: its best plan and the lower bound over the work done.
#pragma once

#include <string>

#include "plots/report/report.h"

namespace pfeife::plots {

/// Best estimate and lower bound over candidates evaluated (not over seconds: equal input gives
/// equal bytes), as steps. "" if the search has no history with a plan.
std::string search_chart(const CaseRecord& report_case);

}  // namespace pfeife::plots
