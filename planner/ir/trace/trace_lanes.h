// Where the events of a trace go when they are drawn: lanes in which no two events overlap.
// Used by every picture of a trace (plots/timeline/timeline.h, planner/io/results/chrome_trace.h).
#pragma once

#include <vector>

#include "planner/ir/trace/trace.h"

namespace pfeife {

/// One event in a lane of one rank.
struct LaneItem {
  std::size_t event = 0;  ///< index into Trace::events
  std::size_t lane = 0;   ///< counts from 0 within the rank's compute or communication lanes
  bool guest = false;     ///< the event's own rank is another one: a further party of a reduction
  friend bool operator==(const LaneItem&, const LaneItem&) = default;
};

/// What one rank shows. Items are sorted by start; items of one lane do not overlap.
struct RankLanes {
  std::vector<LaneItem> compute;        ///< F, B, I, W, overlaps, optimizer
  std::vector<LaneItem> communication;  ///< transfers it sends, reductions it is party to
  std::size_t compute_lanes = 1;        ///< 1 unless computations overlap (measured traces may)
  std::size_t communication_lanes = 1;  ///< as many as there are at the same time
  friend bool operator==(const RankLanes&, const RankLanes&) = default;
};

/// The lanes of every rank, [rank]. Each event is there once as non-guest. Events of one lane may
/// touch (end = start). Every rank of an event must be below trace.ranks (InternalError otherwise).
std::vector<RankLanes> lanes(const Trace& trace);

}  // namespace pfeife
