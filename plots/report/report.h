// The report of an experiment: one HTML file that needs nothing else and no network. Its scripts
// show plans and timelines (page/), from data that stands in the page once; what else is known of
// a case is HTML.
//
// Its input is plain data, so that a case can be kept on disk and put into a later report: traces
// are text that was made when the case was computed. Not decided here: which cases and plans there
// are, and how long the page may get (it holds every trace it is given).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/result/case_record.h"

namespace pfeife {

struct ReportInput {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  ///< model, cluster, version, ...
  std::vector<std::string> notes;                          ///< warnings about the whole experiment
  std::vector<CaseRecord> cases;
  /// [case] a JSON object: of each plan, by its name, an array of packed_trace(), the predicted one
  /// first. May be shorter, "" = none.
  std::vector<std::string> traces;
  std::vector<std::pair<std::string, Cluster>> clusters;  ///< and how they are called
  std::string config;                                     ///< the resolved configuration, as text
  bool beside_files = true;  ///< the page lies where the folders of the cases do, and leads there
};

/// The report as HTML. Every text but the traces is escaped. Equal input gives equal bytes.
std::string report_html(const ReportInput& input);

}  // namespace pfeife
