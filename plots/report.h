// The report of an experiment: one HTML file that needs nothing else, no network, no scripts to be
// read.
//
// Its input is plain data, so that a case can be kept on disk and put into a later report without
// its traces: drawings are SVG text made when the case was computed. Not decided here: which cases
// and plans there are, and how long the page may get (it holds every drawing it is given).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/ir/case_record.h"
#include "planner/ir/cluster.h"

namespace pfeife {

/// A drawing with a heading: a timeline, or whatever else belongs to a plan or a case.
struct ReportFigure {
  std::string title;
  std::string svg;  ///< a document of timeline_svg() or another drawing of plots/; goes in as it is
};

/// What is known of a plan, and its timelines.
struct ReportPlan : PlanRecord {
  std::vector<ReportFigure> figures;
};

struct ReportCase {
  std::string name;
  std::vector<ReportPlan> plans;
  std::vector<LostSchedule> lost;
  std::vector<SearchStep> history;        ///< of the search
  std::vector<PlanChoice> choices;        ///< what each way of choosing among its best plans picks
  std::vector<FrontPoint> front;          ///< time against memory, fastest first
  std::vector<Alternative> alternatives;  ///< of what the case leaves open
  std::vector<TriedChange> tried;         ///< if nothing fits
  std::string bound_covers;               ///< what lower bounds hold for; "" = none
  std::vector<std::string> notes;         ///< where figures come from, warnings
  std::vector<ReportFigure> figures;      ///< drawings of the case as a whole
};

struct ReportInput {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  ///< model, cluster, version, ...
  std::vector<std::string> notes;                          ///< warnings about the whole experiment
  std::vector<ReportCase> cases;
  std::vector<std::pair<std::string, Cluster>> clusters;  ///< and how they are called
  std::string config;                                     ///< the resolved configuration, as text
};

/// The report as HTML. Every text but ReportFigure::svg is escaped. Equal input gives equal bytes.
std::string report_html(const ReportInput& input);

/// The plan to mark as best: the fastest of those that fit, by measured time if all of them have
/// one, else by simulated, else by estimated time; the first of equally fast ones. Nothing if none
/// fits.
std::optional<std::size_t> best_plan(const ReportCase& report_case);

}  // namespace pfeife
