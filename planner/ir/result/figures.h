// Figures of merit of a plan besides its step, bubble and peak: those that papers report, and
// what a rank's memory is for.
#pragma once

#include <optional>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

/// The terms of what a rank reserves, which add up to it exactly, and what it has beside that.
struct MemoryContents {
  Bytes parameters{0}, gradients{0}, optimizer{0};  ///< held throughout
  Bytes saved{0};                                   ///< from forward to backward
  Bytes autocast_copies{0};                         ///< 16-bit copies of parameters, likewise
  Bytes held_for_weights{0};                        ///< from I to W
  Bytes buffers{0};  ///< received and not used yet, made and not sent yet
  Bytes temporary{0};
  Bytes segments{0};  ///< free in the allocator's segments, modelled
  // Outside the allocator, assumed (planner/ir/machine/allocator_settings.h).
  Bytes context{0}, communicators{0};
  Bytes total() const {
    return parameters + gradients + optimizer + saved + autocast_copies + held_for_weights +
           buffers + temporary + segments;
  }
  friend bool operator==(const MemoryContents&, const MemoryContents&) = default;
};

/// The largest time of a rank from the start of its first F, B, I, W or optimizer step to the end
/// of its last: a step where no rank waits for another one's optimizer (Qi et al. 2024). 0 without
/// events.
Nanoseconds span(const Trace& trace);
/// Start of the first event to the end of the last F, B, I or W.
Nanoseconds step_without_optimizer(const Trace& trace);
/// The longest that a microbatch takes from the start of its first F to the end of its last, where
/// the model runs forward only; nothing if there is a backward, or no F.
std::optional<Nanoseconds> forward_latency(const Trace& trace);

struct PlanFigures {
  /// By the engine by which the case's plans are compared (result_engine.h).
  std::optional<Nanoseconds> span, without_optimizer;
  std::optional<Nanoseconds> latency;  ///< of a microbatch, where the model runs forward only
  /// FLOPs of the model for a step, nothing recomputed, over step and devices; and what share of
  /// the devices' published peaks that is.
  std::optional<FlopsPerSecond> rate;
  std::optional<double> utilization;
  std::vector<Bytes> reference_peak;   ///< [rank] by the memory rule of reference mode
  std::vector<MemoryContents> memory;  ///< [rank] at its peak
  friend bool operator==(const PlanFigures&, const PlanFigures&) = default;
};

}  // namespace pfeife
