// The tables of the report.
#pragma once

#include <string>

#include "plots/report/report.h"

namespace pfeife::plots {

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
