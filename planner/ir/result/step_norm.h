// What the optimizer steps of a plan wait for besides their own gradients.
//   if (step_norm(planned.best().plan) == StepNorm::Clipped) std::puts("clipped");
#pragma once

#include "planner/ir/result/plan.h"

namespace pfeife {

/// A number of all gradients of all ranks (REDUCE_NORM), for which all optimizer steps wait: none;
/// whether they are finite, for fp16's loss scale; their norm, by which they are then scaled. Each
/// takes no less time than those before it.
enum class StepNorm : std::uint8_t { None, Finite, Clipped };

inline StepNorm step_norm(const Plan& plan) {
  if (plan.clip_norm > 0) return StepNorm::Clipped;
  return needs_norm(plan) ? StepNorm::Finite : StepNorm::None;
}

}  // namespace pfeife
