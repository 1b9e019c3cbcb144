// The comparison that every test of equivalence makes.
#pragma once

#include <gtest/gtest.h>

#include "tests/runtime/pipelines.h"

namespace pfeife::testing {

/// Losses, gradients and buffers of a pipeline are those of the unsplit model (largest relative
/// difference of a tensor: `tolerance`), copies of tied parameters are equal to the bit, and what
/// was measured satisfies every edge of the dependency graph.
inline void expect_same(const Pipeline& pipeline, const Outcome& split, const Outcome& whole,
                        double tolerance, const std::string& what) {
  ASSERT_FALSE(whole.gradients.empty()) << what;
  EXPECT_LE(largest_difference(split.gradients, whole.gradients), tolerance) << what;
  ASSERT_EQ(split.losses.size(), whole.losses.size()) << what;
  for (std::size_t m = 0; m < whole.losses.size(); ++m)
    EXPECT_NEAR(split.losses[m], whole.losses[m], tolerance * std::abs(whole.losses[m])) << what;
  EXPECT_LE(largest_difference(split.buffers, whole.buffers), tolerance) << what;
  EXPECT_EQ(split.replica_difference, 0) << what;
  const bool on_cpu = whole.gradients.begin()->second.device().is_cpu();
  EXPECT_EQ(broken_edge(pipeline.tasks, measured_trace(pipeline.tasks, split.records),
                        on_cpu ? Nanoseconds{0} : kDeviceClocksDiffer),
            "")
      << what;
}

}  // namespace pfeife::testing
