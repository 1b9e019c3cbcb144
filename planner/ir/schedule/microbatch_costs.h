// What microbatches cost that differ, from what a microbatch of the layers' own size does.
//
// A stage's compute has a part outside attention, which grows with MicrobatchScale::linear, and one
// inside, which grows with MicrobatchScale::attention. Saved bytes, messages and temporaries grow
// with `linear`. Parameters, their gradients and the optimizer stay. Not modelled: launches, and
// kernels that reach another share of a device's speed on other sizes.
#pragma once

#include <span>

#include "planner/ir/model/microbatch_scale.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// The costs with StageCosts::kinds of these scales, [microbatch]; as they are if there are none.
/// `linear`: [stage] the share of its compute that is outside attention, or one for all. Times and
/// bytes are rounded to the next unit; times of messages stay.
StageCosts with_microbatches(StageCosts any, std::span<const MicrobatchScale> scales,
                             std::span<const double> linear);

}  // namespace pfeife
