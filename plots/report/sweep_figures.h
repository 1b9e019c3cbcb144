// What the curves along a sweep show: one figure of a plan a chart.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife::plots {

struct SweepFigure {
  using Value = std::function<std::optional<double>(const CaseRecord&, const PlanRecord&)>;
  std::string title;
  Value value, dashed;      ///< dashed: bound or limit; may be empty
  const char* dashed_name;  ///< of the legend
};

/// Samples/s, bubble, gap, and peak memory in a unit that suits the smallest peak.
std::vector<SweepFigure> sweep_figures(const std::vector<CaseRecord>& cases);

}  // namespace pfeife::plots
