
#include "planner/ir/basics/round_down.h"
#include "plots/figure/axis.h"
#include "plots/figure/html.h"
#include "plots/figure/svg.h"
#include "plots/report/parts.h"

namespace pfeife::plots {
namespace {

HtmlCell text_cell(const std::string& text) { return {escape(text), "", "", ""}; }

/// A time in ms; sorted by nanoseconds, exact on hovering.
HtmlCell time_cell(const std::optional<Nanoseconds>& time) {
  if (!time) return {};
  return {fixed(milliseconds(*time), table_decimals(*time)), std::to_string(time->count()), "",
          std::to_string(time->count()) + " ns"};
}

/// Rounded down: what is above a lower bound need not be true. `step`: of the plan beside it.
HtmlCell bound_cell(const std::optional<Nanoseconds>& bound,
                    const std::optional<Nanoseconds>& step) {
  if (!bound) return {};
  HtmlCell cell = time_cell(bound_in_tables(*bound, step));
  cell.value = std::to_string(bound->count()), cell.hint = std::to_string(bound->count()) + " ns";
  return cell;
}

HtmlCell bytes_cell(Bytes bytes) {
  return {escape(rounded(bytes)), std::to_string(bytes.value), "",
          std::to_string(bytes.value) + " bytes"};
}

}  // namespace

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
