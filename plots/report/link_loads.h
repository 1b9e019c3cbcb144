// The part of a case about its links: how full each is while the chosen plan runs, and what sharing
// them costs.
#pragma once

#include <string>

#include "planner/ir/trace/link_load.h"

namespace pfeife::plots {

/// Headings, sentences, a table of loads, and the messages between stages that last longer than
/// alone.
std::string links_section(const LinksRecord& links);

}  // namespace pfeife::plots
