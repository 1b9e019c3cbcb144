// The part of the report about one case: how sure its figures are, and what was tried.
#pragma once

#include <string>

#include "plots/report/report.h"

namespace pfeife::plots {

/// A fold with the anchor `case-NUMBER`: what is known of the case besides its plans' figures and
/// traces. With `beside_files`, links lead to its drawings, in its folder beside the page.
std::string case_section(const CaseRecord& report_case, std::size_t number,
                         bool beside_files = true);

/// A list of notes, "" without any.
std::string note_list(const std::vector<std::string>& notes);

}  // namespace pfeife::plots
