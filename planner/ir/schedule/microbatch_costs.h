// What microbatches cost that differ, or a part of one, from what a microbatch of the layers' own
// size does.
//
// A stage's compute has a part outside attention, which grows with MicrobatchScale::linear, and one
// inside, which grows with MicrobatchScale::attention. Saved bytes, messages and temporaries grow
// with `linear`. Parameters, their gradients and the optimizer stay. Not modelled: launches, and
// kernels that reach another share of a device's speed on other sizes.
#pragma once

#include <functional>
#include <span>

#include "planner/ir/model/microbatch_scale.h"
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

/// The costs with StageCosts::kinds of these scales, [microbatch]; as they are if there are none.
/// `linear`: [stage] the share of its compute that is outside attention, or one for all. Times and
/// bytes are rounded to the next unit; times of messages stay.
StageCosts with_microbatches(StageCosts any, std::span<const MicrobatchScale> scales,
                             std::span<const double> linear);

}  // namespace pfeife
