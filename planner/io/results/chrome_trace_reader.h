// What a trace file that write_chrome_trace has written says about the length of each action.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "planner/ir/trace/trace.h"

namespace pfeife {

struct ActionTimes {
  std::map<std::string, Nanoseconds> length;  ///< by the text of the cell; of a transfer, its SEND
  Nanoseconds step{0};                        ///< first start to last end
};

/// Reads the events of one source. Errors: ConfigError if the file has none of that source, or is
/// no trace file.
ActionTimes read_action_times(const std::filesystem::path& file, TraceSource source);

/// The trace of one source as it was written: events, memory, what each waited for (parties of a
/// reduction: the ranks that show it). Errors: ConfigError as above, and if events were left out.
Trace read_trace(const std::filesystem::path& file, TraceSource source);

}  // namespace pfeife
