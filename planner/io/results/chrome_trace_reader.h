// Traces of files that write_chrome_trace has written.
#pragma once

#include <filesystem>

#include "planner/ir/trace/trace.h"

namespace pfeife {

/// The trace of one source as it was written: events, memory, what each waited for (parties of a
/// reduction: the ranks that show it). Errors: ConfigError if the file has no events of that source,
/// has some left out, or is no trace file.
Trace read_trace(const std::filesystem::path& file, TraceSource source);

}  // namespace pfeife
