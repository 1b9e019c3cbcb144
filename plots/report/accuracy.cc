#include <algorithm>
#include <functional>

#include "planner/ir/basics/round_down.h"
#include "planner/ir/result/measured_pairs.h"
#include "plots/figure/axis.h"
#include "plots/figure/html.h"
#include "plots/figure/svg.h"
#include "plots/report/parts.h"

namespace pfeife::plots {
namespace {

HtmlCell plain_time_cell(const std::optional<Nanoseconds>& time) {
  if (!time) return {};
  return {fixed(milliseconds(*time), table_decimals(*time)), std::to_string(time->count()), "", ""};
}

/// predicted / measured - 1, with its sign.
HtmlCell error_cell(double predicted, double measured) {
  const double error = relative_error(predicted, measured);
  return {(error < 0 ? "" : "+") + percent(error), fixed(error, 9), "", ""};
}

HtmlCell error_cell(const std::optional<Nanoseconds>& predicted, Nanoseconds measured) {
  return predicted ? error_cell(milliseconds(*predicted), milliseconds(measured)) : HtmlCell{};
}

HtmlCell plain_bytes_cell(Bytes bytes) {
  return {escape(rounded(bytes)), std::to_string(bytes.value), "",
          std::to_string(bytes.value) + " bytes"};
}

/// Half of the interval's width.
HtmlCell interval_cell(const MeasuredRun& run) {
  const auto found = median_interval(run);
  if (!found) return {};
  return {"&plusmn;" + percent(found->half_width()) + (misses_goal(run) ? " !" : ""),
          fixed(found->half_width(), 9), "",
          "with 95 %: from " + fixed(found->low / 1e6, 3) + " to " + fixed(found->high / 1e6, 3) +
              " ms" + (misses_goal(run) ? "; asked for were " + percent(run.interval_goal) : "")};
}

HtmlRow row_of(const PlanRecord& plan, std::size_t ranks) {
  HtmlRow row;
  row.cells = {
      {escape(plan.row.plan), "", "", ""},
      plain_time_cell(plan.row.estimate),
      plain_time_cell(plan.row.simulate),
      plain_time_cell(plan.row.measure),
      plain_time_cell(plan.measured->p5),
      plain_time_cell(plan.measured->p95),
      interval_cell(*plan.measured),
      {std::to_string(plan.measured->rounds.size()), "", "", ""},
      {fixed(plan.measured->others, 1), fixed(plan.measured->others, 9), "",
       "processors that other programs kept busy meanwhile: above 0.2, the errors are theirs"},
      error_cell(plan.row.estimate, *plan.row.measure),
      error_cell(plan.row.simulate, *plan.row.measure),
      error_cell(plan.measured->anew, *plan.row.measure)};
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::vector<Bytes>& measured = plan.measured->peak_memory;
    const bool known = r < measured.size() && r < plan.need.allocated.size();
    row.cells.push_back(known ? plain_bytes_cell(plan.need.allocated[r]) : HtmlCell{});
    row.cells.push_back(known ? plain_bytes_cell(measured[r]) : HtmlCell{});
    row.cells.push_back(known ? error_cell(static_cast<double>(plan.need.allocated[r].value),
                                           static_cast<double>(measured[r].value))
                              : HtmlCell{});
  }
  return row;
}

}  // namespace

bool was_measured(const PlanRecord& plan) {
  return plan.row.measure && plan.measured && plan.measured->failure.empty();
}

std::string accuracy_table(const CaseRecord& report_case) {
  std::size_t ranks = 0;
  std::vector<const PlanRecord*> plans;
  for (const PlanRecord& plan : report_case.plans)
    if (was_measured(plan)) {
      plans.push_back(&plan);
      ranks = std::max(ranks, plan.measured->peak_memory.size());
    }
  if (plans.empty()) return "";
  std::vector<HtmlColumn> columns{{"Plan"},
                                  {"Estimated, ms", true},
                                  {"Simulated, ms", true},
                                  {"Measured, ms", true},
                                  {"p5, ms", true},
                                  {"p95, ms", true},
                                  {"Median known to", true},
                                  {"Rounds", true},
                                  {"Other programs, processors", true},
                                  {"Error of the estimate", true},
                                  {"Error of the simulation", true},
                                  {"Error of an estimate with a profile of these rounds", true}};
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::string rank = "Rank " + std::to_string(r) + " peak, ";
    for (const char* what : {"predicted", "measured", "error"})
      columns.push_back({rank + what, true});
  }
  std::vector<HtmlRow> rows;
  for (const PlanRecord* plan : plans) rows.push_back(row_of(*plan, ranks));
  return table(columns, rows);
}

std::string pairs_table(const CaseRecord& report_case) {
  std::vector<HtmlRow> rows;
  for (const MeasuredPair& pair : measured_pairs(report_case)) {
    const double half = (pair.longer.high - pair.longer.low) / 2;
    rows.push_back({{{escape(report_case.plans[pair.faster].row.plan), "", "", ""},
                     {escape(report_case.plans[pair.slower].row.plan), "", "", ""},
                     {percent(pair.longer.median) + " &plusmn; " + percent(half),
                      fixed(pair.longer.median, 9), "",
                      "with 95 %: from " + percent(pair.longer.low) + " to " +
                          percent(pair.longer.high) + ", round by round"},
                     {pair.apart() ? "yes" : "no", "", "", ""},
                     {pair.predicted ? "yes" : "no", "", "", ""}}});
  }
  if (rows.empty()) return "";
  return table({{"Faster"}, {"Than"}, {"By", true}, {"Told apart"}, {"As predicted"}}, rows);
}

std::string furthest_table(const PlanRecord& plan) {
  if (!was_measured(plan) || plan.measured->furthest.empty()) return "";
  std::vector<HtmlRow> rows;
  for (const ActionError& error : plan.measured->furthest)
    rows.push_back({{{std::to_string(error.rank.value), "", "", ""},
                     {escape(error.action), "", "", ""},
                     plain_time_cell(error.predicted),
                     plain_time_cell(error.measured),
                     error_cell(error.predicted, error.measured)}});
  return table(
      {{"Rank"}, {"Action"}, {"Predicted, ms", true}, {"Measured, ms", true}, {"Error", true}},
      rows);
}

std::string furthest_table(const std::vector<CaseRecord>& cases) {
  constexpr std::size_t kShown = 5;
  struct Found {
    const CaseRecord* record;
    const PlanRecord* plan;
    ActionError error;
    Nanoseconds distance() const {
      return std::max(error.predicted - error.measured, error.measured - error.predicted);
    }
  };
  std::vector<Found> found;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans)
      if (was_measured(plan))
        for (const ActionError& error : plan.measured->furthest)
          found.push_back({&record, &plan, error});
  if (found.empty()) return "";
  std::ranges::stable_sort(found, std::greater{}, &Found::distance);
  found.resize(std::min(found.size(), kShown));
  std::vector<HtmlRow> rows;
  for (const auto& [record, plan, error] : found)
    rows.push_back({{{escape(record->name), "", "", ""},
                     {escape(plan->row.plan), "", "", ""},
                     {std::to_string(error.rank.value), "", "", ""},
                     {escape(error.action), "", "", ""},
                     plain_time_cell(error.predicted),
                     plain_time_cell(error.measured),
                     error_cell(error.predicted, error.measured)}});
  return table({{"Case"},
                {"Plan"},
                {"Rank"},
                {"Action"},
                {"Predicted, ms", true},
                {"Measured, ms", true},
                {"Error", true}},
               rows);
}

}  // namespace pfeife::plots
