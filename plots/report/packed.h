// Numbers and traces as short text for the page's script; report_packed.js reads them.
//   page += packed_trace(trace, costs);  // about 2 bytes an event
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "planner/ir/schedule/stage_costs.h"
#include "planner/ir/trace/trace.h"

namespace pfeife::plots {

/// Whole numbers of at most 53 bits: each 2 n, or -2 n - 1 if negative, in digits of 5 bits
/// (A-Z a-z 0-9 - _), the lowest first, 32 added while more follow. "!", a distance d and a length
/// l, digits likewise, stand for l characters that begin d before them.
std::string packed(std::span<const std::int64_t> numbers);

/// A JSON string; what JSON or HTML gives a meaning is written as a code, broken UTF-8 as U+FFFD.
std::string json_text(std::string_view text);

/// The trace as a JSON object, times in ns from its first event on:
///   source, ranks
///   classes   [class] [text, kind, rank, peer, bytes, parties, parts]: events that differ in
///             their microbatches alone. text: as to_string(cell), # for a microbatch; kind:
///             TaskKind; parts: [[Paint, stage], ...]
///   event     the class of each event, less the one before
///   and columns with a number an event, each less what the class's event before had:
///   micro     of each part that has one, besides less 1
///   time, launch   durations
///   waits     1 + the class of the event that it waited for; 0 = none
///   which     that event's number within its class, less the own one's; of those that waited
///   start     less the end of what it waited for (0 without), not less the event before
///   queued    start less posted of a transfer, not less the event before
///   memory    [rank] time and bytes of each sample, less the sample before
///   links     [link] [name, bytes a second, ns slowed, time and thousandths of the capacity]; the
///             eight that slow most, then those that most goes over
std::string packed_trace(const Trace& trace, const StageCosts& costs);

}  // namespace pfeife::plots
