// The tables of the report.
#pragma once

#include <string>

#include "plots/report/report.h"

namespace pfeife::plots {

/// The best plan of every case, and how far it is ahead.
std::string summary_table(const ReportInput& input);
/// Every plan of every case.
std::string results_table(const ReportInput& input);
/// The terms of every rank's step in ms, exact; the critical rank marked. "" without attribution.
std::string attribution_table(const PlanRecord& plan);
/// Peak of every rank against its limit, a row a plan. "" if no plan has peaks.
std::string memory_table(const CaseRecord& report_case);
/// Schedules that were considered, their bounds, and why they are not the plan. "" without any.
std::string lost_table(const CaseRecord& report_case);
/// What each way of choosing picks, and what its figures cost over the least. "" if there is one
/// way only.
std::string choices_table(const CaseRecord& report_case);
/// Ways to settle what the case leaves open, and why each is not the plan's. "" without any.
std::string alternatives_table(const CaseRecord& report_case);
/// Changes that were tried because nothing fits, and what came of each. "" without any.
std::string tried_table(const CaseRecord& report_case);

}  // namespace pfeife::plots
