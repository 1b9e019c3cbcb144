// Plans against the full evaluation, which shares no code with the search's own.
#pragma once

#include <gtest/gtest.h>

#include "planner/cost/estimate/evaluate.h"
#include "planner/schedules/families.h"
#include "planner/search/search.h"

namespace pfeife {

/// The plan's schedule on its cuts has the estimate and the peak memory that it says, and keeps the
/// problem's limits.
inline void expect_as_told(const Problem& problem, const Priced& plan) {
  EXPECT_EQ(plan.placement, placement_for(plan.spec, problem.device_of_rank));
  Prices full = evaluate(problem.layers, problem.cluster, compute_only(plan), plan.placement,
                         plan.partition, problem.memory_rule, plan.activations);
  if (plan.receives == Receives::AtNeed) full = received_late(full, plan.placement);
  if (plan.rows) {
    EXPECT_EQ(full.costs, plan.rows->costs);
    EXPECT_EQ(full.lowered, plan.rows->lowered);
  }
  EXPECT_EQ(full.estimate, plan.estimate);
  EXPECT_EQ(full.peak_memory, plan.peak_memory);
  ASSERT_EQ(full.peak_memory.size(), problem.memory_limit.size());
  for (std::size_t r = 0; r < full.peak_memory.size(); ++r)
    EXPECT_LE(full.peak_memory[r], problem.memory_limit[r]) << r;
}

}  // namespace pfeife
