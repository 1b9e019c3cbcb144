// Traces for the tests of pictures: 1F1B and interleaved 1F1B, every action as soon as possible.
// Kept apart from the families and the estimator, so that pictures are tested against something
// small.
#pragma once

#include "planner/ir/trace/trace.h"

namespace pfeife {

struct Example {
  std::size_t ranks = 2, microbatches = 4, stages_per_rank = 1;
  Nanoseconds forward{1'000'000}, backward{2'000'000}, transfer{100'000}, optimizer{500'000};
  bool split = false;                            ///< B as I directly followed by W, half each
  Bytes held = 4 * kGiB, saved{kGiB.value / 2};  ///< per rank; per stage and microbatch
  TraceSource source = TraceSource::Estimated;
};

/// microbatches must be a multiple of ranks if stages_per_rank > 1.
Trace example_trace(const Example& example);

}  // namespace pfeife
