// Medians of measured times.
#pragma once

#include <algorithm>
#include <vector>

#include "planner/ir/units.h"

namespace pfeife {

/// The middle of the times (of an even number, the mean of the two in the middle); 0 of none.
inline Nanoseconds median(std::vector<Nanoseconds> times) {
  if (times.empty()) return Nanoseconds{0};
  std::ranges::sort(times);
  const std::size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
}

/// Median absolute deviation from the median: half of the times are no further from it.
inline Nanoseconds spread(std::vector<Nanoseconds> times) {
  const Nanoseconds middle = median(times);
  for (Nanoseconds& time : times) time = std::chrono::abs(time - middle);
  return median(std::move(times));
}

}  // namespace pfeife
