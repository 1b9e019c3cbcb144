// What slices of a microbatch's sequence cost, from what the whole microbatch does.
//
// x new tokens behind a prefix of p: operators outside attention grow with x, causal attention with
// x p + x^2 / 2. So the work up to a share e of the sequence is a e + (1 - a) e^2 of the whole,
// where a is the share of the linear part. Saved values, messages and temporaries grow with the
// length; keys and values are among the saved. Not modelled: launches, and kernels that reach less
// of a device's speed on short slices.
#pragma once

#include <span>
#include <vector>

#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// [slice] Where each of S slices ends, as a share of the sequence; the last one is 1. `linear`:
/// the share of the work that grows with the length alone, 0 to 1. (Seq1F1B cuts its equal times by
/// the same formula; Sun et al. 2024.)
std::vector<double> slice_ends(std::size_t slices, SliceLengths lengths, double linear);

/// The costs with those of slices that end there. `linear`: [stage], or one for all. Durations and
/// bytes of the slices add up to those of the microbatch to the last unit; times of messages stay,
/// as nothing says which part of them is latency.
StageCosts with_slices(StageCosts whole, std::span<const double> ends,
                       std::span<const double> linear);

}  // namespace pfeife
