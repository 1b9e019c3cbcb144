#include <algorithm>

#include "planner/ir/result/case_files.h"
#include "planner/ir/result/result_engine.h"
#include "plots/figure/axis.h"
#include "plots/figure/html.h"
#include "plots/figure/svg.h"
#include "plots/report/parts.h"

namespace pfeife::plots {
namespace {

std::string heading(const std::string& text) { return element("h3", escape(text)); }

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

/// To the drawings of the case, for papers.
std::string drawing_links(const CaseRecord& report_case) {
  if (std::ranges::none_of(report_case.plans,
                           [](const PlanRecord& plan) { return has_time(plan.row); }))
    return "";
  std::string links;
  for (const std::string_view file : {case_file::kPlans, case_file::kRankTimes, case_file::kMemory,
                                      case_file::kPartition, case_file::kLinks})
    if (file != case_file::kLinks || report_case.links)
      links += (links.empty() ? "" : ", ") + std::string("<a href=\"") +
               address("./" + report_case.name + "/" + std::string(file)) + "\">" +
               std::string(file) + "</a>";
  return element("p", "Drawings for papers: " + links);
}

/// "planned: zb_greedy, V=3, 843.1 ms simulated"
std::string best_text(const CaseRecord& report_case) {
  const auto best = best_plan(report_case);
  if (!best) return "<span class=\"alarm\">no plan fits</span>";
  const PlanRecord& plan = report_case.plans[*best];
  return escape("best: " + plan.row.plan + ", " + rounded(*compared_time(report_case, plan)) + " " +
                to_string(compared_engine(report_case)));
}

}  // namespace

std::string note_list(const std::vector<std::string>& notes) {
  std::string items;
  for (const std::string& note : notes) items += element("li", escape(note));
  return items.empty() ? "" : element("div", element("ul", items), " class=\"notes\"");
}

std::string case_section(const CaseRecord& report_case, std::size_t number, bool beside_files) {
  std::vector<std::string> notes = report_case.notes;
  for (const Unfinished& unfinished : report_case.unfinished)
    notes.push_back(to_string(unfinished));
  if (!report_case.handed_from.empty())
    notes.push_back("the plan is that of " + report_case.handed_from);
  if (report_case.cut_places) notes.push_back(to_string(*report_case.cut_places));
  for (const std::string& line : report_case.uncosted) notes.push_back("no cost: " + line);
  std::string body = note_list(notes);
  const auto add = [&](const std::string& title, const std::string& content) {
    if (!content.empty()) body += heading(title) + content;
  };
  add("What would help", tried_table(report_case));
  if (!report_case.bound_covers.empty())
    add("What the lower bound covers", element("p", escape(report_case.bound_covers)));
  if (const std::string accuracy = accuracy_table(report_case); !accuracy.empty())
    add("Accuracy: predicted against measured", accuracy + pairs_table(report_case));
  for (const PlanRecord& plan : report_case.plans)
    add(plan.row.plan + ": actions furthest from their prediction, median of the measured steps",
        furthest_table(plan));
  if (report_case.links) body += links_section(*report_case.links);
  if (report_case.slow) {
    std::string lines;
    for (const std::string& line : sentences(*report_case.slow))
      lines += element("p", escape(line));
    add("A slow rank", lines);
  }
  if (const std::string search = search_chart(report_case); !search.empty())
    add("The search: best estimate and lower bound over its work",
        element("div", search, " class=\"wide\""));
  add("What each way of choosing among the search's best plans picks", choices_table(report_case));
  add("What the case left open", alternatives_table(report_case));
  add("Other schedules: " + std::to_string(report_case.lost.size()) + " considered",
      lost_table(report_case));
  if (beside_files) body += drawing_links(report_case);
  return element(
      "details",
      element("summary", "<b>" + escape(report_case.name) + "</b>" + best_text(report_case)) + body,
      " id=\"case-" + std::to_string(number) + "\"");
}

}  // namespace pfeife::plots
