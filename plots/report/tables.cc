#include "plots/report/tables.h"

#include <algorithm>

#include "planner/ir/basics/round_down.h"
#include "planner/ir/result/result_engine.h"
#include "plots/figure/axis.h"
#include "plots/figure/html.h"
#include "plots/figure/svg.h"
#include "plots/report/charts.h"

namespace pfeife::plots {
namespace {

HtmlCell text_cell(const std::string& text) { return {escape(text), "", "", ""}; }

/// A time in ms; sorted by nanoseconds, exact on hovering.
HtmlCell time_cell(const std::optional<Nanoseconds>& time) {
  if (!time) return {};
  return {fixed(milliseconds(*time), table_decimals(*time)), std::to_string(time->count()), "",
          std::to_string(time->count()) + " ns"};
}

HtmlCell number_cell(const std::optional<double>& value, int decimals) {
  if (!value) return {};
  return {fixed(*value, decimals), fixed(*value, 9), "", ""};
}

HtmlCell percent_cell(const std::optional<double>& fraction) {
  if (!fraction) return {};
  return {percent(*fraction), fixed(*fraction, 9), "", ""};
}

/// Rounded down: what is above a lower bound need not be true. `step`: of the plan beside it.
HtmlCell bound_cell(const std::optional<Nanoseconds>& bound,
                    const std::optional<Nanoseconds>& step) {
  if (!bound) return {};
  HtmlCell cell = time_cell(bound_in_tables(*bound, step));
  cell.value = std::to_string(bound->count()), cell.hint = std::to_string(bound->count()) + " ns";
  return cell;
}

HtmlCell gap_cell(const std::optional<double>& gap) {
  if (!gap) return {};
  return {escape(gap_text(*gap) + " %"), fixed(*gap, 9), "", ""};
}

HtmlCell bytes_cell(Bytes bytes) {
  return {escape(rounded(bytes)), std::to_string(bytes.value), "",
          std::to_string(bytes.value) + " bytes"};
}

int decimals_of_rate(double rate) {
  return rate >= 1000 ? 0 : rate >= 100 ? 1 : rate >= 10 ? 2 : 3;
}

HtmlCell rate_cell(const std::optional<double>& rate) {
  return rate ? number_cell(rate, decimals_of_rate(*rate)) : HtmlCell{};
}

/// What schedule it is, or why there is none.
HtmlCell schedule_cell(const PlanRecord& plan) {
  if (plan.row.estimate || plan.row.simulate || plan.row.measure || plan.reason.empty())
    return text_cell(schedule_name(plan.row));
  return {"<span class=\"muted\">" + escape(plan.reason) + "</span>", "", "white-space:normal", ""};
}

HtmlCell fits_cell(const PlanRecord& plan) {
  return {plan.row.feasible ? "yes" : "<span class=\"alarm\">no</span>", "", "", ""};
}

HtmlCell limit_cell(const ResultRow& row) {
  return row.memory_limit.value > 0 ? bytes_cell(row.memory_limit) : HtmlCell{};
}

/// How much slower the fastest other plan that fits is, as a fraction.
std::optional<double> lead(const CaseRecord& report_case, std::size_t best) {
  const TraceSource engine = compared_engine(report_case);
  const auto own = time_of(report_case.plans[best].row, engine);
  std::optional<Nanoseconds> next;
  for (std::size_t i = 0; i < report_case.plans.size(); ++i) {
    const ResultRow& row = report_case.plans[i].row;
    const auto time = time_of(row, engine);
    if (i != best && row.feasible && time && (!next || *time < *next)) next = time;
  }
  if (!next || !own || own->count() <= 0) return std::nullopt;
  return static_cast<double>(next->count()) / static_cast<double>(own->count()) - 1;
}

/// A cell with a bar behind the figure: `share` of its width.
std::string bar_style(double share, Color bar) {
  const std::string end = fixed(std::clamp(share, 0.0, 1.0) * 100, 1) + "%";
  return "min-width:96px;background:linear-gradient(90deg," + hex(bar) + " " + end + "," +
         hex(kIdle) + " " + end + ")";
}

/// By which engine the case's plans are compared, if not all cases are alike.
HtmlCell engine_cell(const CaseRecord& report_case, const ReportInput& input) {
  const std::string engine = to_string(compared_engine(report_case));
  return engine == engine_text(input.cases) ? HtmlCell{} : text_cell(engine);
}

}  // namespace

std::string summary_table(const ReportInput& input) {
  const std::string engine = engine_text(input.cases);
  const std::vector<HtmlColumn> columns{{"Case"},
                                        {"Best plan"},
                                        {"Schedule"},
                                        {"Estimated, ms", true},
                                        {"Simulated, ms", true},
                                        {"Measured, ms", true},
                                        {"Compared by"},
                                        {"Samples/s, " + engine, true},
                                        {"Next best is slower by", true},
                                        {"Gap of estimate to bound", true},
                                        {"Estimated peak memory", true}};
  std::vector<HtmlRow> rows;
  for (std::size_t c = 0; c < input.cases.size(); ++c) {
    const CaseRecord& report_case = input.cases[c];
    HtmlRow row;
    row.cells = {
        {"<a href=\"#case-" + std::to_string(c) + "\">" + escape(report_case.name) + "</a>", "", "",
         ""}};
    const auto best = best_plan(report_case);
    if (!best) {
      row.cells.push_back({"<span class=\"alarm\">no plan fits</span>", "", "", ""});
    } else {
      const PlanRecord& plan = report_case.plans[*best];
      for (HtmlCell& cell : std::vector<HtmlCell>{
               text_cell(plan.row.plan), text_cell(schedule_name(plan.row)),
               time_cell(plan.row.estimate), time_cell(plan.row.simulate),
               time_cell(plan.row.measure), engine_cell(report_case, input),
               rate_cell(plan.row.samples_per_s), percent_cell(lead(report_case, *best)),
               gap_cell(plan.row.gap),
               plan.row.peak_memory ? bytes_cell(*plan.row.peak_memory) : HtmlCell{}})
        row.cells.push_back(std::move(cell));
    }
    rows.push_back(std::move(row));
  }
  return table(columns, rows);
}

static std::vector<HtmlCell> result_cells(const ReportInput& input, const CaseRecord& report_case,
                                          const PlanRecord& plan, bool best) {
  const ResultRow& row = plan.row;
  HtmlCell name = text_cell(row.plan);
  if (best) name.content = "<b>" + name.content + " ★</b>";
  return {text_cell(report_case.name),
          name,
          schedule_cell(plan),
          fits_cell(plan),
          time_cell(row.estimate),
          time_cell(row.estimate_p5),
          time_cell(row.estimate_median),
          time_cell(row.estimate_p95),
          time_cell(row.simulate),
          time_cell(plan.simulate_p5),
          time_cell(plan.simulate_median),
          time_cell(row.simulate_p95),
          time_cell(row.measure),
          engine_cell(report_case, input),
          rate_cell(row.samples_per_s),
          percent_cell(row.bubble),
          bound_cell(row.lower_bound, row.estimate),
          gap_cell(row.gap),
          gap_cell(row.simulate_gap),
          row.peak_memory ? bytes_cell(*row.peak_memory) : HtmlCell{},
          row.reserved ? bytes_cell(*row.reserved) : HtmlCell{},
          limit_cell(row),
          row.candidates > 0 ? number_cell(static_cast<double>(row.candidates), 0) : HtmlCell{}};
}

std::string results_table(const ReportInput& input) {
  const std::string engine = engine_text(input.cases);
  const std::vector<HtmlColumn> columns{{"Case"},
                                        {"Plan"},
                                        {"Schedule"},
                                        {"Fits"},
                                        {"Estimated, ms", true},
                                        {"Estimated p5, ms", true},
                                        {"Estimated median, ms", true},
                                        {"Estimated p95, ms", true},
                                        {"Simulated, ms", true},
                                        {"Simulated p5, ms", true},
                                        {"Simulated median, ms", true},
                                        {"Simulated p95, ms", true},
                                        {"Measured, ms", true},
                                        {"Compared by"},
                                        {"Samples/s, " + engine, true},
                                        {"Bubble, " + engine, true},
                                        {"Bound, ms", true},
                                        {"Estimated gap", true},
                                        {"Simulated gap", true},
                                        {"Estimated peak", true},
                                        {"Reserved, modelled", true},
                                        {"Limit", true},
                                        {"Candidates", true}};
  std::vector<HtmlRow> rows;
  for (const CaseRecord& report_case : input.cases) {
    const auto best = best_plan(report_case);
    for (std::size_t i = 0; i < report_case.plans.size(); ++i)
      rows.push_back(
          {result_cells(input, report_case, report_case.plans[i], best == i), best == i});
  }
  return table(columns, rows);
}

std::string attribution_table(const PlanRecord& plan) {
  if (plan.attribution.empty()) return "";
  std::vector<HtmlColumn> columns{{"Rank"}};
  for (const Cause& cause : causes(Attribution{})) columns.push_back({cause.name + ", ms", true});
  columns.push_back({"step, ms", true});
  std::vector<HtmlRow> rows;
  for (std::size_t r = 0; r < plan.attribution.size(); ++r) {
    HtmlRow row;
    row.marked = r == plan.critical_rank.index();
    row.cells.push_back(
        {std::to_string(r) + (row.marked ? " <b>critical</b>" : ""), std::to_string(r), "", ""});
    for (const Cause& cause : causes(plan.attribution[r]))
      row.cells.push_back(time_cell(cause.time));
    const Nanoseconds total = plan.attribution[r].total();
    row.cells.push_back(time_cell(total));
    rows.push_back(std::move(row));
  }
  return table(columns, rows);
}

std::string memory_table(const CaseRecord& report_case) {
  std::size_t ranks = 0;
  for (const PlanRecord& plan : report_case.plans) ranks = std::max(ranks, plan.peak_memory.size());
  if (ranks == 0) return "";
  std::vector<HtmlColumn> columns{{"Plan"}};
  for (std::size_t r = 0; r < ranks; ++r) columns.push_back({"rank " + std::to_string(r), true});
  columns.push_back({"Smallest limit", true});
  std::vector<HtmlRow> rows;
  for (const PlanRecord& plan : report_case.plans) {
    if (plan.peak_memory.empty()) continue;
    HtmlRow row;
    row.cells.push_back(text_cell(plan.row.plan));
    for (std::size_t r = 0; r < ranks; ++r) {
      const Bytes needed = r < plan.must_fit().size() ? plan.must_fit()[r] : Bytes{0};
      HtmlCell cell = r < plan.peak_memory.size() ? bytes_cell(plan.peak_memory[r]) : HtmlCell{};
      if (needed > Bytes{0} && !plan.reserved.empty()) cell.hint += ", reserved " + rounded(needed);
      if (r < plan.peak_memory.size() && r < plan.memory_limit.size() &&
          plan.memory_limit[r].value > 0) {
        const bool over = needed > plan.memory_limit[r];
        cell.style = bar_style(
            static_cast<double>(needed.value) / static_cast<double>(plan.memory_limit[r].value),
            over ? mix(kAlarm, kPaper, 0.55) : mix(kMemory, kPaper, 0.35));
        cell.hint += ", limit " + rounded(plan.memory_limit[r]);
        if (over) cell.content = "<b>" + cell.content + " !</b>";
      }
      row.cells.push_back(std::move(cell));
    }
    row.cells.push_back(plan.memory_limit.empty()
                            ? limit_cell(plan.row)
                            : bytes_cell(std::ranges::min(plan.memory_limit)));
    rows.push_back(std::move(row));
  }
  return table(columns, rows);
}

std::string lost_table(const CaseRecord& report_case) {
  if (report_case.lost.empty()) return "";
  std::vector<HtmlRow> rows;
  for (const LostSchedule& lost : report_case.lost)
    rows.push_back({{text_cell(lost.schedule), bound_cell(lost.bound, {}),
                     text_cell(to_string(lost.reason))}});
  return table({{"Schedule"}, {"Lower bound, ms", true}, {"Why it is not the plan"}}, rows);
}

std::string choices_table(const CaseRecord& report_case) {
  const std::vector<PlanChoice>& choices = report_case.choices;
  if (choices.size() < 2) return "";
  const auto cell = [&](const PlanChoice& choice, std::optional<Nanoseconds> PlanChoice::*figure) {
    HtmlCell shown = time_cell(choice.*figure);
    std::optional<Nanoseconds> least;
    for (const PlanChoice& other : choices)
      if (other.*figure && (!least || *(other.*figure) < *least)) least = other.*figure;
    if (choice.*figure && *(choice.*figure) > *least)
      shown.content += " (+" +
                       percent(static_cast<double>((*(choice.*figure) - *least).count()) /
                               static_cast<double>(least->count())) +
                       ")";
    return shown;
  };
  std::vector<HtmlRow> rows;
  for (const PlanChoice& choice : choices)
    rows.push_back({{text_cell(to_string(choice.by)), text_cell(choice.schedule),
                     cell(choice, &PlanChoice::estimate), cell(choice, &PlanChoice::simulate),
                     cell(choice, &PlanChoice::p95), text_cell(choice.used ? "yes" : "")},
                    choice.used});
  return table({{"Chosen by"},
                {"Schedule"},
                {"Estimated, ms", true},
                {"Simulated, ms", true},
                {"p95, ms", true},
                {"Used here"}},
               rows);
}

std::string alternatives_table(const CaseRecord& report_case) {
  if (report_case.alternatives.empty()) return "";
  std::vector<HtmlRow> rows;
  for (const Alternative& alternative : report_case.alternatives)
    rows.push_back(
        {{text_cell(alternative.choice), text_cell(alternative.schedule),
          time_cell(alternative.estimate), bound_cell(alternative.bound, alternative.estimate),
          alternative.peak_memory ? bytes_cell(*alternative.peak_memory) : HtmlCell{},
          text_cell(alternative.reason.why != Why::Chosen
                        ? to_string(alternative.reason, alternative.bound)
                    : alternative.estimate ? "chosen"
                                           : "closest to fitting")},
         alternative.reason.why == Why::Chosen});
  return table({{"Choice"},
                {"Best schedule"},
                {"Estimated, ms", true},
                {"Lower bound, ms", true},
                {"Estimated peak memory", true},
                {"Why it is not the plan"}},
               rows);
}

std::string tried_table(const CaseRecord& report_case) {
  if (report_case.tried.empty()) return "";
  std::vector<HtmlRow> rows;
  for (const TriedChange& tried : report_case.tried)
    rows.push_back({{text_cell(tried.change), text_cell(tried.estimate ? "yes" : "no"),
                     text_cell(outcome_text(tried))}});
  return table({{"Change"}, {"Something fits"}, {"What came of it"}}, rows);
}

}  // namespace pfeife::plots
