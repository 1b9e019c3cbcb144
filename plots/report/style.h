// How the report looks and what its only script does: sort tables, open everything for printing.
#pragma once

#include <string>

namespace pfeife::plots {

std::string report_style();   ///< the content of <style>
std::string report_script();  ///< the content of <script>

}  // namespace pfeife::plots
