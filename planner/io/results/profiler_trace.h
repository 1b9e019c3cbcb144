// Steps that were measured, in the form in which torch.profiler exports a rank's: for tools that
// read those (TensorBoard, HTA, Perfetto), and for pfeife-exp compare.
//
// Each action is a range of its name ("0F3") with one operator of the same length in it, each
// transfer a range on a thread of its own in its sender's file, from where it was posted to its
// arrival. Steps follow each other a millisecond apart. Not there: operators, shapes, stacks.
#pragma once

#include <span>
#include <string>

#include "planner/ir/trace/trace.h"

namespace pfeife {

/// The JSON of one rank; read_profile() gives back the times to the nanosecond.
std::string profiler_trace(std::span<const Trace> steps, RankId rank);

}  // namespace pfeife
