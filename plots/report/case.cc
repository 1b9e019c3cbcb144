#include "plots/report/case.h"

#include "planner/ir/result_engine.h"
#include "plots/figure/axis.h"
#include "plots/figure/html.h"
#include "plots/figure/svg.h"
#include "plots/report/accuracy.h"
#include "plots/report/charts.h"
#include "plots/report/front.h"
#include "plots/report/search.h"
#include "plots/report/tables.h"

namespace pfeife::plots {
namespace {

std::string heading(const std::string& text) { return element("h3", escape(text)); }

std::string figure(const std::string& timeline) {
  if (timeline.empty()) return "";
  return element("figure", element("figcaption", "Timeline") +
                               element("div", inline_svg(timeline), " class=\"wide\""));
}

std::string term(const std::string& name, const std::string& text) {
  return text.empty() ? "" : element("dt", escape(name)) + element("dd", escape(text));
}

std::string cuts_text(const PlanRecord& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.row.cuts.size(); ++i) {
    text += (i == 0 ? "after " : ", ") + std::to_string(plan.row.cuts[i]);
    if (i < plan.cut_names.size()) text += " (" + plan.cut_names[i] + ")";
  }
  return text;
}

/// Times, one after the other, of the engines present.
std::string times_text(const ResultRow& row) {
  std::string text;
  const auto add = [&](const char* source, const std::optional<Nanoseconds>& time) {
    if (time) text += (text.empty() ? "" : ", ") + std::string(source) + " " + rounded(*time);
  };
  add("estimated", row.estimate);
  add("simulated", row.simulate);
  add("measured", row.measure);
  return text;
}

std::string plan_section(const PlanRecord& plan, const std::string& timeline, bool best,
                         bool open) {
  const std::string times = times_text(plan.row);
  std::string head = "<b>" + escape(plan.row.plan) + (best ? " ★" : "") + "</b>";
  head += escape(times.empty() ? (plan.reason.empty() ? "no plan" : plan.reason) : times);
  std::string body = term("Schedule", schedule_name(plan.row)) + term("Cuts", cuts_text(plan)) +
                     term("Not possible", times.empty() ? plan.reason : "");
  if (!body.empty()) body = element("dl", body);
  if (plan.measured && !plan.measured->failure.empty())
    body += element("p", escape("Not measured: " + plan.measured->failure), " class=\"alarm\"");
  body += figure(timeline);
  if (const std::string furthest = furthest_table(plan); !furthest.empty())
    body +=
        heading("Actions furthest from their prediction, median of the measured steps") + furthest;
  if (const std::string stages = stage_chart(plan); !stages.empty())
    body += heading("What each rank computes for one microbatch, estimated; dashed: their mean") +
            element("div", stages, " class=\"wide\"");
  if (!plan.attribution.empty())
    body += heading("Where the time of each rank goes, " + to_string(engine_of(plan.row))) +
            attribution_table(plan);
  return element("details", element("summary", head) + body, open ? " open=\"\"" : "");
}

/// ", simulated": whose times the attributions of a case's plans are.
std::string sources_text(const CaseRecord& report_case) {
  std::string text;
  for (const PlanRecord& plan : report_case.plans) {
    const std::string source = to_string(engine_of(plan.row));
    if (!plan.attribution.empty() && text.find(source) == std::string::npos)
      text += (text.empty() ? ", " : " or ") + source;
  }
  return text;
}

}  // namespace

std::string note_list(const std::vector<std::string>& notes) {
  std::string items;
  for (const std::string& note : notes) items += element("li", escape(note));
  return items.empty() ? "" : element("div", element("ul", items), " class=\"notes\"");
}

std::string case_section(const CaseRecord& report_case, const std::vector<std::string>& timelines,
                         std::size_t number, bool open) {
  const auto best = best_plan(report_case);
  std::string head = "<b>" + escape(report_case.name) + "</b>";
  head += best ? escape("best: " + report_case.plans[*best].row.plan + ", " +
                        times_text(report_case.plans[*best].row))
               : "<span class=\"alarm\">no plan fits</span>";
  std::vector<std::string> notes = report_case.notes;
  for (const std::string& line : report_case.uncosted) notes.push_back("no cost: " + line);
  std::string body = note_list(notes);
  if (const std::string tried = tried_table(report_case); !tried.empty())
    body += heading("What would help") + tried;
  if (const std::string chart = attribution_chart(report_case); !chart.empty())
    body += heading("Where the time of the critical rank goes" + sources_text(report_case)) +
            element("div", chart, " class=\"wide\"");
  if (const std::string accuracy = accuracy_table(report_case); !accuracy.empty())
    body += heading("Accuracy: predicted against measured") + accuracy;
  if (const std::string memory = memory_table(report_case); !memory.empty())
    body += heading("Estimated peak memory of each device, as a share of its limit") + memory;
  if (!report_case.bound_covers.empty())
    body += heading("What the lower bound covers") + element("p", escape(report_case.bound_covers));
  if (const std::string search = search_chart(report_case); !search.empty())
    body += heading("The search: best estimate and lower bound over its work") +
            element("div", search, " class=\"wide\"");
  if (const std::string choices = choices_table(report_case); !choices.empty())
    body += heading("What each way of choosing among the search's best plans picks") + choices;
  if (const std::string open = alternatives_table(report_case); !open.empty())
    body += heading("What the case left open") + open;
  if (const std::string front = front_chart(report_case); !front.empty())
    body += heading("Estimated time against memory: the plans found that no other beats in both") +
            element("div", front, " class=\"wide\"");
  body += heading("Plans");
  for (std::size_t i = 0; i < report_case.plans.size(); ++i)
    body += plan_section(report_case.plans[i], i < timelines.size() ? timelines[i] : "", best == i,
                         open && best == i);
  if (const std::string lost = lost_table(report_case); !lost.empty())
    body += element(
        "details", element("summary", "<b>Other schedules</b>" +
                                          std::to_string(report_case.lost.size()) + " considered") +
                       lost);
  return element("details", element("summary", head) + body,
                 " id=\"case-" + std::to_string(number) + "\"" + (open ? " open=\"\"" : ""));
}

}  // namespace pfeife::plots
