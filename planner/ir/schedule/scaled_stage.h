// A part of a microbatch, or a microbatch that is not like others, as a cost of its own.
#pragma once

#include <functional>

#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// What becomes of each figure.
struct Scaling {
  std::function<Nanoseconds(Nanoseconds)> time;  ///< of compute and its collectives
  std::function<Nanoseconds(Nanoseconds)> copy;  ///< of copies to the host and back
  std::function<Bytes(Bytes)> bytes;             ///< saved, temporary, input, offloaded
};

/// The stage with all scaled that grows with a microbatch: not parameters, gradients, optimizer.
StageCost scaled_stage(const StageCost& whole, const Scaling& scaling);
/// Bytes of what is sent and kept; times of messages stay.
void scale_messages(const std::function<Bytes(Bytes)>& bytes, StageCosts::Slice& part);

}  // namespace pfeife
