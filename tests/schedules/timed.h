// A family's point, lowered and timed: for tests.
#pragma once

#include <gtest/gtest.h>

#include "planner/cost/estimate/estimator.h"
#include "planner/ir/result/figures.h"
#include "planner/ir/schedule/lower.h"
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

}  // namespace pfeife
