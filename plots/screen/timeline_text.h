// A trace in characters: a row a rank, time to the right, for a terminal.
//   std::fputs(timeline_text(trace, {.width = 100, .colour = true}).c_str(), stdout);
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/ir/trace/trace.h"

namespace pfeife {

struct TimelineTextOptions {
  std::size_t width = 80;  ///< characters of a line at most; at least 40
  bool colour = false;     ///< 256 colours, and blocks of half a character; else ASCII alone
  std::string unit;        ///< of the axis; "" = that of time
  /// Texts behind the rows, the head's first; empty = none.
  std::vector<std::string> behind;
};

/// What each rank computes, to scale, labelled ("F0", in colour "0") where most actions have room;
/// else an action has at least a place (in colour half a character), on up to eight lines a rank;
/// else a place shows one of those that run in it. Lines end in newlines, none in a blank.
std::string timeline_text(const Trace& trace, const TimelineTextOptions& options);

}  // namespace pfeife
