// The report of an experiment: one HTML file that needs nothing else, no network, no scripts to be
// read.
//
// Its input is plain data, so that a case can be kept on disk and put into a later report without
// its traces: timelines are SVG text made when the case was computed. Not decided here: which cases
// and plans there are, and how long the page may get (it holds every timeline it is given).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/result/case_record.h"

namespace pfeife {

/// Documents of plans_svg(), rank_times_svg(), memory_bars_svg(), partition_svg(), link_loads_svg()
/// and timeline_svg(), which go in as they are; "" or absent = none.
struct CaseDrawings {
  std::string plans, rank_times, memory, partition, links;
  std::vector<std::string> timelines;  ///< [plan]
};

struct ReportInput {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  ///< model, cluster, version, ...
  std::vector<std::string> notes;                          ///< warnings about the whole experiment
  std::vector<CaseRecord> cases;
  std::vector<CaseDrawings> drawings;                     ///< [case]; may be shorter
  std::vector<std::pair<std::string, Cluster>> clusters;  ///< and how they are called
  std::string config;                                     ///< the resolved configuration, as text
  bool beside_files = true;  ///< the page lies where the folders of the cases do, and leads there
};

/// The report as HTML. Every text but the timelines is escaped. Equal input gives equal bytes.
std::string report_html(const ReportInput& input);

}  // namespace pfeife
