// What was predicted against what was measured.
#pragma once

#include <string>
#include <vector>

#include "plots/report/report.h"

namespace pfeife::plots {

bool was_measured(const PlanRecord& plan);
/// A row a measured plan: step times, errors, peak memory of each rank predicted and measured. ""
/// if no plan of the case was measured.
std::string accuracy_table(const CaseRecord& report_case);
/// A row a pair of plans that were measured in the same rounds. "" without any.
std::string pairs_table(const CaseRecord& report_case);
/// The actions whose duration was furthest from the prediction. "" if the plan was not measured.
std::string furthest_table(const PlanRecord& plan);
/// The five actions of all cases that were furthest from their prediction, in time. "" without any.
std::string furthest_table(const std::vector<CaseRecord>& cases);

}  // namespace pfeife::plots
