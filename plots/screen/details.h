// Why the chosen plan of a case is the plan: the prose of --verbose.
#pragma once

#include <string>

#include "plots/screen/columns.h"

namespace pfeife {

/// The case's heading, and below it the chosen plan in full: its bound and what that covers, why
/// other families lost, plans that need less memory, what was left open, what links cost, what was
/// tried; the memory of each device of every plan; why there is no plan.
std::string details_text(const CaseRecord& record, const MemoryUnit& unit, std::size_t width);

}  // namespace pfeife
