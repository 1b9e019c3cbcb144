// Prose below the table of the screen.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"
#include "plots/screen/columns.h"

namespace pfeife {

// Why the chosen plan of a case is the plan: the prose of --verbose.

/// The case's heading, and below it the chosen plan in full: its bound and what that covers, why
/// other families lost, plans that need less memory, what was left open, what links cost, what was
/// tried; the memory of each device of every plan; why there is no plan.
std::string details_text(const CaseRecord& record, const MemoryUnit& unit, std::size_t width);

// What in the results asks the reader to do something.

/// A line or a few for each case that nothing fits (why, and what would help), in which another way
/// of choosing picks a plan that is at least 1 % better by the figure it chooses by, or in which
/// estimate and simulation differ by more than 1 %; of each kind the first cases, and how many more
/// there are. Operators without a cost. "" if there is nothing to do.
std::string action_text(const std::vector<CaseRecord>& cases, std::size_t width);

/// What another way of choosing would pick, a sentence a plan: "select_by simulate picks gpipe,
/// 22.000 ms estimated".
std::vector<std::string> other_choices(const CaseRecord& record);

}  // namespace pfeife
