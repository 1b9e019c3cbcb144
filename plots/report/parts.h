// The parts of the report that report.cc puts together; each is in a source of its name.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/result/case_record.h"
#include "planner/ir/trace/link_load.h"
#include "plots/report/report.h"

namespace pfeife::plots {

// What the page's script shows, as JSON: plans of all cases with their figures and traces.

/// An object: title, paints ([Paint] fill, pale, letter, name), causes (of an attribution: name,
/// fill), contents (of memory, likewise), series (colours) and cases. Times are in ns, memory in
/// bytes; what is not known is left out. Fits into a script element of a page.
std::string page_data(const ReportInput& input);

// How the report looks, and its scripts, which the build embeds from page/.

extern const char kReportCss[];     ///< page/page.css, without the values of its variables
extern const char kReportScript[];  ///< page/*.js: the content of <script>

/// The content of <style>: page.css in the colours of plots/figure/theme.h.
std::string report_style();

// The part of the report about one case: how sure its figures are, and what was tried.

/// A fold with the anchor `case-NUMBER`: what is known of the case besides its plans' figures and
/// traces. With `beside_files`, links lead to its drawings, in its folder beside the page.
std::string case_section(const CaseRecord& report_case, std::size_t number,
                         bool beside_files = true);

/// A list of notes, "" without any.
std::string note_list(const std::vector<std::string>& notes);

// The tables of the report.

/// Schedules that were considered, their bounds, and why they are not the plan. "" without any.
std::string lost_table(const CaseRecord& report_case);
/// What each way of choosing picks, and what its figures cost over the least. "" if there is one
/// way only.
std::string choices_table(const CaseRecord& report_case);
/// Ways to settle what the case leaves open, and why each is not the plan's. "" without any.
std::string alternatives_table(const CaseRecord& report_case);
/// Changes that were tried because nothing fits, and what came of each. "" without any.
std::string tried_table(const CaseRecord& report_case);

// The chart of a search: its best plan and the lower bound over the work done.

/// Best estimate and lower bound over candidates evaluated (not over seconds: equal input gives
/// equal bytes), as steps. "" if the search has no history with a plan.
std::string search_chart(const CaseRecord& report_case);

// The part of the report about links: what each pair of devices has between it, and, in a
// case, how full each is while the chosen plan runs.

/// Bandwidth (of large messages) and latency from each device to each other one. Consecutive
/// devices that no path tells apart share a row and a column. Of more than 32 such rows the first
/// are shown.
/// "" for a single device.
std::string links_table(const Cluster& cluster);

/// Headings, sentences, a table of loads, and the messages between stages that last longer than
/// alone.
std::string links_section(const LinksRecord& links);

// The chart of predicted over measured step times, of all cases at once.

/// A mark for each measured plan and engine: hollow circles estimated, filled squares simulated;
/// across each the p5 to p95 of its measured steps, thick the interval of their median (rounds);
/// dashed the line of no error. Both axes alike, in one unit; logarithmic where the times differ by
/// 50 and more. "" if nothing was measured.
std::string accuracy_scatter(const std::vector<CaseRecord>& cases);

// What was predicted against what was measured.

bool was_measured(const PlanRecord& plan);
/// A row a measured plan: step times, errors, peak memory of each rank predicted and measured. ""
/// if no plan of the case was measured.
std::string accuracy_table(const CaseRecord& report_case);
/// A row a pair of plans that were measured in the same rounds. "" without any.
std::string pairs_table(const CaseRecord& report_case);
/// The actions whose duration was furthest from the prediction. "" if the plan was not measured.
std::string furthest_table(const PlanRecord& plan);
/// The five actions of all cases that were furthest from their prediction, in time. "" without any.
std::string furthest_table(const std::vector<CaseRecord>& cases);

}  // namespace pfeife::plots
