// A family's point, lowered and timed: for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/cost/estimator.h"
#include "planner/ir/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {

/// The trace of the point under `costs` without contention; fails the test on a deadlock.
inline Trace timed(const ScheduleSpec& spec, const StageCosts& costs,
                   const Semantics& semantics = {}) {
  const Placement placement = placement_for(spec);
  const Schedule lowered = lower(generate(spec), costs, placement);
  const auto answer =
      estimate(dependencies(lowered, stage_graph(costs), placement, semantics), costs);
  EXPECT_TRUE(std::holds_alternative<Trace>(answer)) << spec.family;
  return std::holds_alternative<Trace>(answer) ? std::get<Trace>(answer) : Trace{};
}

/// The longest time between a rank's first and last compute: where the optimizer need not wait for
/// all ranks.
inline Nanoseconds span(const Trace& trace) {
  Nanoseconds longest{0};
  for (std::size_t r = 0; r < trace.ranks; ++r) {
    Nanoseconds first = Nanoseconds::max(), last{0};
    for (const Event& event : trace.events)
      if (event.rank.index() == r && event.kind == TaskKind::Compute)
        first = std::min(first, event.start), last = std::max(last, event.end);
    longest = std::max(longest, last - first);
  }
  return longest;
}

}  // namespace pfeife
