// How many microbatches a rank holds on to: between F and the gradient of its inputs, and between I
// and W.
//   trace.memory = tool::in_flight(trace);  // one microbatch, one byte
#pragma once

#include <cstddef>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/trace/trace.h"

namespace pfeife::tool {

struct Holdings {
  /// Most stage-microbatches whose F is done and whose B or I is not; of rows of F alone those
  /// whose F runs.
  std::size_t in_flight = 0;
  std::size_t for_weight = 0;  ///< most stage-microbatches whose I is done and whose W is not
  friend bool operator==(const Holdings&, const Holdings&) = default;
};

/// The highest counts over the row of `rank`.
Holdings peak_holdings(const Schedule& schedule, RankId rank);

/// [rank] The stage-microbatches in flight over time, one a byte: from the start of F to the end of
/// B or I, of rows of F alone to the end of F. For drawings of schedules, of which nobody knows
/// bytes.
std::vector<std::vector<MemorySample>> in_flight(const Trace& trace);

}  // namespace pfeife::tool
