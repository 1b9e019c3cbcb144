// How the report looks, and its scripts, which the build embeds from page/.
#pragma once

#include <string>

namespace pfeife::plots {

extern const char kReportCss[];     ///< page/page.css, without the values of its variables
extern const char kReportScript[];  ///< page/*.js: the content of <script>

/// The content of <style>: page.css in the colours of plots/figure/theme.h.
std::string report_style();

}  // namespace pfeife::plots
