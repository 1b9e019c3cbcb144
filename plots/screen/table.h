// The closing table: what each plan does in each case, for a terminal.
//   std::puts(screen_table({record_of(planned)}, {.width = 120}).c_str());
#pragma once

#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife {

struct ScreenOptions {
  std::size_t width = 80;    ///< characters of a line
  bool colour = false;       ///< bold, red and yellow
  bool verbose = false;      ///< every plan in full, and why it is the plan
  bool chosen_only = false;  ///< of each case the chosen plan
  /// Names of the cases whose chosen plan a better one may still replace.
  std::vector<std::string> still_moving;
  int digits = 4;                    ///< of the shortest step and of the lowest rate
  std::vector<std::string> columns;  ///< names of column_names(); empty = the usual ones
  std::string report;                ///< where the rest is to be read; "" = not said
};

/// A row a plan, the chosen one first, then the baselines, the fastest first and behind them those
/// that do not fit; below it what asks for action: cases that nothing fits, and what would help;
/// other ways of choosing that pick other plans; estimates and simulations that differ; operators
/// without a cost. Rows are never broken: long names of plans are cut. From 120 characters on the
/// memory of each device is a column. ASCII, and with `colour` a terminal's codes.
std::string screen_table(const std::vector<CaseRecord>& cases, const ScreenOptions& options);

// Which cases and plans of an experiment the screen shows, and what is said of the others.

struct ShownCases {
  std::vector<CaseRecord> cases;  ///< with the plans that are shown
  std::string summary;            ///< what they are a choice of; "" = everything is shown
};

/// Everything of a few cases. Of more the chosen plan of each. Of more than the screen has room for
/// the best case, by the chosen plan's samples per second, of each value of the first key, and of
/// the next keys together with it while there is room; in the order of `cases`. Where a single key
/// has too many values, the best of all. A case that nothing fits stands for its group only if all
/// of the group are like that.
ShownCases cases_to_show(const std::vector<CaseRecord>& cases);

}  // namespace pfeife
