// The part of the report about one case: charts, tables, and a fold for each plan with its
// drawings.
#pragma once

#include <string>

#include "plots/report/report.h"

namespace pfeife::plots {

/// A fold with the anchor `case-NUMBER`; open for the reader if `open`. With `beside_files`
/// links lead to the files of its plans, in folders beside the page.
std::string case_section(const CaseRecord& report_case, const CaseDrawings& drawings,
                         std::size_t number, bool open, bool beside_files = true);

/// A list of notes, "" without any.
std::string note_list(const std::vector<std::string>& notes);

}  // namespace pfeife::plots
