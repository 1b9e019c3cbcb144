// What a rank's memory is for.
#pragma once

#include "planner/ir/basics/units.h"

namespace pfeife {

/// The terms of a rank's peak, which add up to it exactly.
struct MemoryContents {
  Bytes parameters{0}, gradients{0}, optimizer{0};  ///< held throughout
  Bytes saved{0};                                   ///< from forward to backward
  Bytes autocast_copies{0};                         ///< 16-bit copies of parameters, likewise
  Bytes held_for_weights{0};                        ///< from I to W
  Bytes buffers{0};  ///< received and not used yet, made and not sent yet
  Bytes temporary{0};
  Bytes total() const {
    return parameters + gradients + optimizer + saved + autocast_copies + held_for_weights +
           buffers + temporary;
  }
  friend bool operator==(const MemoryContents&, const MemoryContents&) = default;
};

}  // namespace pfeife
