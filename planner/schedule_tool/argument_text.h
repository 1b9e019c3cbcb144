// Numbers as the verbs print them, and arguments of the command line that are more than a word.
// Errors: ConfigError with the option's name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/ir/schedule/schedule.h"

namespace pfeife::tool {

/// Milliseconds with six digits behind the point, less trailing zeros: "33.25".
std::string ms_text(double ms);
/// "12.3 %".
std::string percent_text(double fraction);

/// Signs, blanks and letters are errors.
std::size_t whole_number(const std::string& text, const std::string& option);
/// "3" or "3,2,1".
std::vector<std::size_t> whole_numbers(const std::string& text, const std::string& option);
/// The value of --queues.
Queues read_queues(const std::string& name);
/// "0>3" of --skip: stage 3 reads from stage 0.
StageGraph::Edge read_skip(const std::string& text);
/// "0,3" of --tied: stages that share a parameter, sorted.
std::vector<StageId> read_tied(const std::string& text);

}  // namespace pfeife::tool
