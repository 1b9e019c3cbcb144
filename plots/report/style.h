// How the report looks and what its only script does: sort tables, open everything for printing.
#pragma once

#include <string>

namespace pfeife::plots {

extern const char kReportCss[];     ///< report.css, without the values of its variables
extern const char kReportScript[];  ///< report.js: the content of <script>

/// The content of <style>: report.css in the colours of plots/figure/theme.h.
std::string report_style();

}  // namespace pfeife::plots
