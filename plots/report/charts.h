// The charts of the report, one a case: where the time of the critical rank goes, and the work of
// each rank.
#pragma once

#include <string>

#include "plots/report/report.h"

namespace pfeife::plots {

/// The engine whose times of a case are compared: the best that all plans that
/// fit have; if none fits, the best that all have.
TraceSource compared_engine(const CaseRecord& report_case);
/// That engine's time, or the best the row has if that one is absent; nothing without any.
std::optional<Nanoseconds> shown_time(const ResultRow& row, TraceSource engine);

/// A stacked bar a plan. "" if no plan has an attribution.
std::string attribution_chart(const CaseRecord& report_case);
/// A bar a rank, of what its stages compute for one microbatch, with a line at the mean of the
/// ranks. "" without stages.
std::string stage_chart(const PlanRecord& plan);

}  // namespace pfeife::plots
