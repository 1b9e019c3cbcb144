#include "plots/report/case.h"

#include "planner/ir/result/result_engine.h"
#include "plots/figure/axis.h"
#include "plots/figure/html.h"
#include "plots/figure/svg.h"
#include "plots/report/accuracy.h"
#include "plots/report/charts.h"
#include "plots/report/front.h"
#include "plots/report/link_loads.h"
#include "plots/report/search.h"
#include "plots/report/tables.h"

namespace pfeife::plots {
namespace {

std::string heading(const std::string& text) { return element("h3", escape(text)); }

std::string figure(const std::string& drawing) {
  if (drawing.empty()) return "";
  return element("figure", element("div", inline_svg(drawing), " class=\"wide\""));
}

/// What is read on the screen and not printed.
std::string on_screen(const std::string& content) {
  return content.empty() ? "" : element("div", content, " class=\"on-screen\"");
}

/// The path as a part of an address: what has a meaning there is written as bytes.
std::string address(const std::string& path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/=,";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos)
      text += c;
    else
      text += std::string("%") + kDigits[byte >> 4] + kDigits[byte & 15];
  }
  return text;
}

/// To the files of a plan.
std::string file_links(const CaseRecord& report_case, const PlanRecord& plan) {
  std::string links;
  for (const char* file : {"plan.yaml", "schedule.csv", "timeline.svg", "trace.json"})
    links += (links.empty() ? "" : ", ") + std::string("<a href=\"") +
             address("./" + report_case.name + "/" + plan.row.plan + "/" + file) + "\">" + file +
             "</a>";
  return links;
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

std::string plan_section(const CaseRecord& report_case, const PlanRecord& plan,
                         const std::string& timeline, bool best, bool beside_files) {
  const std::string times = times_text(plan.row);
  std::string head = "<b>" + escape(plan.row.plan) + (best ? " ★" : "") + "</b>";
  head += escape(times.empty() ? (plan.reason.empty() ? "no plan" : plan.reason) : times);
  std::string body = term("Schedule", schedule_name(plan.row)) + term("Cuts", cuts_text(plan)) +
                     term("Not possible", times.empty() ? plan.reason : "");
  if (!times.empty() && beside_files)
    body += element("dt", "Files", " class=\"on-screen\"") +
            element("dd", file_links(report_case, plan), " class=\"on-screen\"");
  if (!body.empty()) body = element("dl", body);
  if (plan.measured && !plan.measured->failure.empty())
    body += element("p", escape("Not measured: " + plan.measured->failure), " class=\"alarm\"");
  body += figure(timeline);
  std::string more;
  if (const std::string furthest = furthest_table(plan); !furthest.empty())
    more +=
        heading("Actions furthest from their prediction, median of the measured steps") + furthest;
  if (const std::string stages = stage_chart(plan); !stages.empty())
    more += heading("What each rank computes for one microbatch, estimated; dashed: their mean") +
            element("div", stages, " class=\"wide\"");
  if (!plan.attribution.empty())
    more +=
        heading("Where the time of each rank goes, " + to_string(compared_engine(report_case))) +
        attribution_table(plan);
  body += on_screen(more);
  return element("details", element("summary", head) + body,
                 best ? " class=\"best\" open=\"\"" : "");
}

}  // namespace

std::string note_list(const std::vector<std::string>& notes) {
  std::string items;
  for (const std::string& note : notes) items += element("li", escape(note));
  return items.empty() ? "" : element("div", element("ul", items), " class=\"notes\"");
}

std::string case_section(const CaseRecord& report_case, const CaseDrawings& drawings,
                         std::size_t number, bool open, bool beside_files) {
  const auto best = best_plan(report_case);
  std::string head = "<b>" + escape(report_case.name) + "</b>";
  head += best ? escape("best: " + report_case.plans[*best].row.plan + ", " +
                        times_text(report_case.plans[*best].row))
               : "<span class=\"alarm\">no plan fits</span>";
  std::vector<std::string> notes = report_case.notes;
  for (const Unfinished& unfinished : report_case.unfinished)
    notes.push_back(to_string(unfinished));
  if (!report_case.handed_from.empty())
    notes.push_back("the plan is that of " + report_case.handed_from);
  if (report_case.cut_places) notes.push_back(to_string(*report_case.cut_places));
  for (const std::string& line : report_case.uncosted) notes.push_back("no cost: " + line);
  std::string body = note_list(notes);
  if (const std::string tried = tried_table(report_case); !tried.empty())
    body += heading("What would help") + tried;
  const auto timeline = [&](std::size_t plan) {
    return plan < drawings.timelines.size() ? drawings.timelines[plan] : "";
  };
  // The best plan alone is printed: its timeline if there is one.
  if (!drawings.plans.empty()) {
    const std::string plans = heading("All plans on one time axis") + figure(drawings.plans);
    body += best && !timeline(*best).empty() ? on_screen(plans) : plans;
  }
  std::string times;
  if (!drawings.rank_times.empty())
    times = heading("Where the time of each rank goes") + figure(drawings.rank_times);
  else if (const std::string chart = attribution_chart(report_case); !chart.empty())
    times = heading("Where the time of the critical rank goes, " +
                    to_string(compared_engine(report_case))) +
            element("div", chart, " class=\"wide\"");
  body += on_screen(times);
  if (const std::string accuracy = accuracy_table(report_case); !accuracy.empty())
    body += heading("Accuracy: predicted against measured") + accuracy + pairs_table(report_case);
  std::string more;
  if (!drawings.memory.empty())
    more +=
        heading("What fills each rank's memory at its peak, estimated") + figure(drawings.memory);
  else if (const std::string memory = memory_table(report_case); !memory.empty())
    more += heading("Estimated peak memory of each device, as a share of its limit") + memory;
  if (!drawings.partition.empty())
    more += heading("Which layers each rank has; lines: cuts") + figure(drawings.partition);
  if (report_case.links) more += links_section(*report_case.links, drawings.links);
  if (!report_case.bound_covers.empty())
    more += heading("What the lower bound covers") + element("p", escape(report_case.bound_covers));
  if (const std::string search = search_chart(report_case); !search.empty())
    more += heading("The search: best estimate and lower bound over its work") +
            element("div", search, " class=\"wide\"");
  if (const std::string choices = choices_table(report_case); !choices.empty())
    more += heading("What each way of choosing among the search's best plans picks") + choices;
  if (const std::string open = alternatives_table(report_case); !open.empty())
    more += heading("What the case left open") + open;
  if (const std::string front = front_chart(report_case); !front.empty())
    more += heading("Estimated time against memory: the plans found that no other beats in both") +
            element("div", front, " class=\"wide\"");
  body += on_screen(more + heading("Plans"));
  for (std::size_t i = 0; i < report_case.plans.size(); ++i)
    body += plan_section(report_case, report_case.plans[i], timeline(i), best == i, beside_files);
  if (const std::string lost = lost_table(report_case); !lost.empty())
    body += on_screen(element(
        "details", element("summary", "<b>Other schedules</b>" +
                                          std::to_string(report_case.lost.size()) + " considered") +
                       lost));
  return element("details", element("summary", head) + body,
                 " id=\"case-" + std::to_string(number) + "\"" + (open ? " open=\"\"" : ""));
}

}  // namespace pfeife::plots
