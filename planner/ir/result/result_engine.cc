#include "planner/ir/result/result_engine.h"

#include <algorithm>
#include <array>

#include "planner/ir/trace/accuracy.h"

namespace pfeife {
namespace {

constexpr std::array kBestFirst{TraceSource::Measured, TraceSource::Simulated,
                                TraceSource::Estimated};

}  // namespace

bool has_time(const ResultRow& row) { return row.estimate || row.simulate || row.measure; }

std::optional<Nanoseconds> time_of(const ResultRow& row, TraceSource engine) {
  switch (engine) {
    case TraceSource::Estimated:
      return row.estimate;
    case TraceSource::Simulated:
      return row.simulate;
    case TraceSource::Measured:
      return row.measure;
    case TraceSource::Imported:
      break;
  }
  return std::nullopt;
}

std::optional<double> samples_per_second(const ResultRow& row, TraceSource engine) {
  const auto step = time_of(row, engine);
  if (!step || step->count() <= 0) return std::nullopt;
  return static_cast<double>(row.microbatches) * static_cast<double>(row.microbatch_size) /
         seconds(*step);
}

TraceSource compared_engine(const std::vector<const ResultRow*>& rows) {
  const auto fits = [](const ResultRow* row) { return row->feasible && has_time(*row); };
  const bool any_fits = std::ranges::any_of(rows, fits);
  const auto is_compared = [&](const ResultRow* row) {
    return any_fits ? fits(row) : has_time(*row);
  };
  if (std::ranges::none_of(rows, is_compared)) return TraceSource::Estimated;
  for (const TraceSource engine : kBestFirst)
    if (std::ranges::all_of(
            rows, [&](const ResultRow* row) { return !is_compared(row) || time_of(*row, engine); }))
      return engine;
  return TraceSource::Estimated;
}

TraceSource compared_engine(const CaseRecord& record) {
  std::vector<const ResultRow*> rows;
  for (const PlanRecord& plan : record.plans) rows.push_back(&plan.row);
  return compared_engine(rows);
}

TraceSource compared_engine(std::span<const CaseRecord> cases) {
  std::vector<const ResultRow*> rows;
  for (const CaseRecord& record : cases)
    if (!record.plans.empty()) rows.push_back(&record.plans.front().row);
  return compared_engine(rows);
}

std::optional<Nanoseconds> compared_time(const CaseRecord& record, const PlanRecord& plan) {
  return time_of(plan.row, compared_engine(record));
}

std::string engine_text(std::span<const CaseRecord> cases) {
  std::string text;
  for (const TraceSource engine : kBestFirst)
    if (std::ranges::any_of(cases, [&](const CaseRecord& record) {
          return compared_engine(record) == engine &&
                 std::ranges::any_of(record.plans,
                                     [](const PlanRecord& plan) { return has_time(plan.row); });
        }))
      text += (text.empty() ? "" : " or ") + to_string(engine);
  return text.empty() ? to_string(TraceSource::Estimated) : text;
}

std::optional<std::size_t> best_plan(const CaseRecord& record) {
  const TraceSource engine = compared_engine(record);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < record.plans.size(); ++i) {
    const ResultRow& row = record.plans[i].row;
    const auto time = time_of(row, engine);
    if (row.feasible && time && (!best || *time < *time_of(record.plans[*best].row, engine)))
      best = i;
  }
  return best;
}

bool measured_beside(const CaseRecord& record, const PlanRecord& plan) {
  return plan.row.measure && compared_engine(record) != TraceSource::Measured;
}

std::optional<double> error_of(const ResultRow& row, TraceSource engine) {
  const auto predicted = engine != TraceSource::Measured ? time_of(row, engine)
                         : row.simulate                  ? row.simulate
                                                         : row.estimate;
  if (!predicted || !row.measure || row.measure->count() <= 0) return std::nullopt;
  return relative_error(milliseconds(*predicted), milliseconds(*row.measure));
}

}  // namespace pfeife
