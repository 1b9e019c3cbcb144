// How full each link is over a simulated step: a row a link, true to one scale of time.
#pragma once

#include <string>

#include "planner/ir/trace/trace.h"

namespace pfeife {

/// An SVG document of trace.links; the fullest first, 16 at most. What varies within a pixel of
/// time is drawn as its mean. At the end of a row: its mean load, its capacity, and by how much
/// transfers last longer because it is shared. "" without links.
std::string link_loads_svg(const Trace& trace, int width);

}  // namespace pfeife
