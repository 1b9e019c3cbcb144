// What a model is run for: training steps, or its forward alone.
#pragma once

#include <cstdint>

namespace pfeife {

enum class Mode : std::uint8_t {
  Train,
  /// Serving, evaluation, prefill: rows of F alone. No gradients, no optimizer, nothing is kept for
  /// a backward.
  Forward,
};

}  // namespace pfeife
