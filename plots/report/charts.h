// The charts of the report, one a case: where the time of the critical rank goes, and the work of
// each rank.
#pragma once

#include <string>

#include "plots/report/report.h"

namespace pfeife::plots {

/// A stacked bar a plan. "" if no plan has an attribution.
std::string attribution_chart(const CaseRecord& report_case);
/// A bar a rank, of what its stages compute for one microbatch, with a line at the mean of the
/// ranks. "" without stages.
std::string stage_chart(const PlanRecord& plan);

}  // namespace pfeife::plots
