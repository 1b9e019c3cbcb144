#include "experiments/show/table_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/show/table.h"
#include "planner/ir/result_engine.h"
#include "planner/ir/round_down.h"

namespace pfeife {
namespace {

std::string percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.1f}", 100 * *fraction) : "-";
}

std::string samples(const std::optional<double>& rate) {
  if (!rate) return "-";
  return fmt::format("{:.{}f}", *rate, *rate >= 1000 ? 0 : *rate >= 100 ? 1 : *rate >= 10 ? 2 : 3);
}

/// Percentiles of a step whose durations vary.
std::string spread(const std::optional<Nanoseconds>& p5, const std::optional<Nanoseconds>& median,
                   const std::optional<Nanoseconds>& p95) {
  if (!p95) return "-";
  return milliseconds_text(p5) + " " + milliseconds_text(median) + " " + milliseconds_text(p95);
}

}  // namespace

MemoryUnit memory_unit(Bytes amount) {
  const auto unit = [](Bytes size, const char* name) {
    return MemoryUnit{static_cast<double>(size.value), name};
  };
  if (amount >= kGiB) return unit(kGiB, "GiB");
  return amount >= kMiB ? unit(kMiB, "MiB") : unit(kKiB, "KiB");
}

MemoryUnit memory_unit(const std::vector<CaseRecord>& cases) {
  std::optional<Bytes> least;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans)
      if (plan.row.peak_memory && (!least || *plan.row.peak_memory < *least))
        least = plan.row.peak_memory;
  return memory_unit(least.value_or(kMiB));
}

std::string MemoryUnit::text(Bytes amount) const {
  return fmt::format("{:.1f}", static_cast<double>(amount.value) / bytes);
}

std::vector<FigureColumn> figure_columns(const std::vector<CaseRecord>& cases) {
  const auto any = [&](auto present) {
    for (const CaseRecord& record : cases)
      for (const PlanRecord& plan : record.plans)
        if (present(plan.row)) return true;
    return false;
  };
  std::vector<FigureColumn> columns{{"estimated", "step, ms", [](const PlanRecord& p) {
                                       return milliseconds_text(p.row.estimate);
                                     }}};
  if (any([](const ResultRow& row) { return row.estimate_p95.has_value(); }))
    columns.push_back({"estimated", "p5 p50 p95, ms", [](const PlanRecord& p) {
                         return spread(p.row.estimate_p5, p.row.estimate_median,
                                       p.row.estimate_p95);
                       }});
  if (any([](const ResultRow& row) { return row.simulate.has_value(); }))
    columns.push_back({"simulated", "step, ms",
                       [](const PlanRecord& p) { return milliseconds_text(p.row.simulate); }});
  if (any([](const ResultRow& row) { return row.simulate_p95.has_value(); }))
    columns.push_back({"simulated", "p5 p50 p95, ms", [](const PlanRecord& p) {
                         return spread(p.simulate_p5, p.simulate_median, p.row.simulate_p95);
                       }});
  if (any([](const ResultRow& row) { return row.measure.has_value(); }))
    columns.push_back({"measured", "step, ms",
                       [](const PlanRecord& p) { return milliseconds_text(p.row.measure); }});
  std::vector<ResultRow> rows;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) rows.push_back(plan.row);
  const std::string engine = engine_text(rows);
  columns.push_back(
      {engine, "samples/s", [](const PlanRecord& p) { return samples(p.row.samples_per_s); }});
  columns.push_back(
      {engine, "bubble, %", [](const PlanRecord& p) { return percent(p.row.bubble); }});
  // What counts is the step that the plan was chosen by.
  if (any([](const ResultRow& row) { return row.simulate_gap.has_value(); }))
    columns.push_back({"simulated", "over bound, %", [](const PlanRecord& p) {
                         return p.row.simulate_gap ? gap_text(*p.row.simulate_gap) : "-";
                       }});
  else if (any([](const ResultRow& row) { return row.gap.has_value(); }))
    columns.push_back({"estimated", "over bound, %",
                       [](const PlanRecord& p) { return p.row.gap ? gap_text(*p.row.gap) : "-"; }});
  return columns;
}

}  // namespace pfeife
