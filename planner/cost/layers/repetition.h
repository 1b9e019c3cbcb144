// The longest stretch of a sequence that is one piece several times over.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace pfeife {

struct Repetition {
  std::size_t first = 0, period = 0, times = 0;  ///< `times` >= 2
  friend bool operator==(const Repetition&, const Repetition&) = default;
};

/// The longest one (in elements of whole pieces); of equally long ones that with the shortest
/// piece, then the first. Nothing if no two neighbouring pieces are equal. Quadratic.
std::optional<Repetition> longest_repetition(std::span<const std::size_t> sequence);

}  // namespace pfeife
