// Timelines: traces as pictures. Ranks are rows, time runs to the right, true to scale.
//
// Each rank has a lane for computation and a thin one for what it sends; under the rows the memory
// of each rank. Estimate, simulation and measurement of one plan can stand above each other on one
// time axis. Not drawn: idle causes (see the attribution in the report), traffic on single links.
//   const std::string picture = timeline_svg(trace, {.title = "a step"});
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/ir/trace/trace.h"

namespace pfeife {

struct TimelineOptions {
  std::string title;
  std::string subtitle;  ///< a second, smaller line; may be empty
  std::vector<std::string>
      names;  ///< [trace] what tells it from the others; may be shorter or empty
  std::vector<Bytes> memory_limits;  ///< [rank]; empty = no limit is drawn
  int width = 1200;  ///< pixels (of 1/96 inch), at least 240; below 480 without figures at the side
  int height = 0;    ///< pixels; 0 = as the ranks need. Rows get what legend and axes leave
  bool column = false;  ///< for a paper: rows that touch, of what is computed alone; see below
  bool memory = true;   ///< draw the memory of each rank, where a trace has it
  bool counts = false;  ///< its bytes are microbatches in flight, and are called so
  bool critical_path = true;  ///< draw the chain of events that the step waited for
  bool legend = true;
  bool head = true;  ///< the line of figures above a trace's rows
};

/// For a column of a paper, 3.3 inches wide: rows of 0.22 inches, letters of 7 points, neither
/// title, memory, transfers nor critical path.
TimelineOptions column_options();

/// An SVG document: the traces below each other on one time axis, each from its own first event.
/// Equal input gives equal bytes. About 110 bytes an event.
std::string timeline_svg(std::span<const Trace> traces, const TimelineOptions& options);
std::string timeline_svg(const Trace& trace, const TimelineOptions& options);

}  // namespace pfeife
