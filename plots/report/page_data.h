// What the page's script shows, as JSON: plans of all cases with their figures and traces.
#pragma once

#include <string>

#include "plots/report/report.h"

namespace pfeife::plots {

/// An object: title, paints ([Paint] fill, pale, letter, name), causes (of an attribution: name,
/// fill), contents (of memory, likewise), series (colours) and cases. Times are in ns, memory in
/// bytes; what is not known is left out. Fits into a script element of a page.
std::string page_data(const ReportInput& input);

}  // namespace pfeife::plots
