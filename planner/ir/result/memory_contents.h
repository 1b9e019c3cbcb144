// What a rank's memory is for.
#pragma once

#include "planner/ir/basics/units.h"

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

}  // namespace pfeife
