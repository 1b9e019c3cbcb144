// The part of a case about its links: how full each is while the chosen plan runs, and what sharing
// them costs.
#pragma once

#include <string>

#include "planner/ir/trace/link_load.h"

namespace pfeife::plots {

/// Headings, sentences, the drawing (of link_loads_svg(); "" = a table in its place), and the
/// messages between stages that last longer than alone.
std::string links_section(const LinksRecord& links, const std::string& drawing);

}  // namespace pfeife::plots
