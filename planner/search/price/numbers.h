// Exact quantities as the doubles that a search computes with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();
inline constexpr double kExact = 9007199254740992.0;  ///< 2^53: integers up to it are exact

inline double number(Nanoseconds time) { return static_cast<double>(time.count()); }
inline double number(Bytes bytes) { return static_cast<double>(bytes.value); }

/// The index of a cut position, which tables of the search are read by.
inline std::size_t at(std::int32_t position) { return static_cast<std::size_t>(position); }

/// Each entry becomes the sum of all up to it.
inline void accumulate(std::vector<double>& sums) {
  for (std::size_t i = 1; i < sums.size(); ++i) sums[i] += sums[i - 1];
}

}  // namespace pfeife
