// By which engine's times the plans of a case are compared. A ratio, a rank and a best exist among
// times of one engine alone; times of other engines stand beside them, with their engine's name.
//   const TraceSource engine = compared_engine(record);
//   for (const PlanRecord& plan : record.plans) show(time_of(plan.row, engine));
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife {

/// What the row of a plan is called that is nearly as fast as the planned one with much less
/// memory.
inline constexpr const char* kLessMemory = "less_memory";
/// The search's, and no baseline.
inline bool is_own(const ResultRow& row) {
  return row.plan == "planned" || row.plan == kLessMemory;
}

/// Some engine gave the row a time: there is such a plan.
bool has_time(const ResultRow& row);
/// The row's time of that engine; nothing if it has none.
std::optional<Nanoseconds> time_of(const ResultRow& row, TraceSource engine);
/// Samples of a step over the row's time of that engine.
std::optional<double> samples_per_second(const ResultRow& row, TraceSource engine);

/// The best engine that all rows that fit have a time of; if none fits, all rows with a time.
/// Measured before simulated before estimated, which it is without any row.
TraceSource compared_engine(const std::vector<const ResultRow*>& rows);
/// For the plans of a case; samples_per_s, bubble, figures and attribution of each are of it.
TraceSource compared_engine(const CaseRecord& record);
/// For the chosen plans of several cases.
TraceSource compared_engine(std::span<const CaseRecord> cases);

/// The plan's time of the engine by which the case's plans are compared.
std::optional<Nanoseconds> compared_time(const CaseRecord& record, const PlanRecord& plan);
/// The engines by which plans are compared, each case's: "simulated", "measured or simulated".
std::string engine_text(std::span<const CaseRecord> cases);

/// The fastest plan that fits, by the engine by which the case's plans are compared; the first of
/// equally fast ones. Nothing if none fits.
std::optional<std::size_t> best_plan(const CaseRecord& record);

/// The plan's measured time is shown beside those that plans are compared by: they are predicted.
bool measured_beside(const CaseRecord& record, const PlanRecord& plan);
/// How far the prediction is from the row's measured time, predicted / measured - 1: of `engine`,
/// or of the better prediction if that is the measuring one. Nothing unless there are both.
std::optional<double> error_of(const ResultRow& row, TraceSource engine);

}  // namespace pfeife
