// Traces as Chrome's trace viewer and Perfetto read them, written and read.
#pragma once

#include <filesystem>
#include <ostream>
#include <span>
#include <string>

#include "planner/ir/trace/trace.h"

namespace pfeife {

// Traces for Perfetto and chrome://tracing: the JSON object form of the Trace Event Format.
//
// One process a rank, with a thread for computation and as many for communication as there are
// transfers at the same time; arrows (flow events) from the computation that makes a value over its
// transfer to the one that uses it; counters of memory, of microbatches in flight and of links: how
// full each is in a simulation that shares them, else how many transfers are under way. Processes
// and threads count from 1. Values handed over within a rank have no arrow.

/// A trace with more events is cut to about so many, half of them its first and half its
/// last: a file of a steady state that goes on for long is slow to load and tells nothing more.
inline constexpr std::size_t kMostEvents = 20'000;

/// Writes the traces, one after the other in the order of processes, each from its own first event
/// at 0. Times are microseconds with three decimals, exact to the nanosecond. Where the middle is
/// left out, an instant on all tracks says so. Nothing of the size of the trace is built up in
/// memory but an index of its computations. Write errors are left in the state of `out`. `title`
/// goes into the file's metadata.
void write_chrome_trace(std::ostream& out, std::span<const Trace> traces, const std::string& title,
                        std::size_t most_events = kMostEvents);
void write_chrome_trace(std::ostream& out, const Trace& trace, const std::string& title,
                        std::size_t most_events = kMostEvents);

// Traces of files that write_chrome_trace has written.

/// The trace of one source as it was written: events, memory, what each waited for (parties of a
/// reduction: the ranks that show it). Errors: ConfigError if the file has no events of that
/// source, has some left out, or is no trace file.
Trace read_trace(const std::filesystem::path& file, TraceSource source);

}  // namespace pfeife
