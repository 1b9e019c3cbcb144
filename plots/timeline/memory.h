// Memory under the rows of a timeline: one strip a rank, all to one scale.
#pragma once

#include <span>

#include "plots/figure/svg.h"
#include "plots/timeline/layout.h"

namespace pfeife::plots {

/// Draws the memory of a panel that has room for it.
void draw_memory(Svg& svg, const TimelineLayout& layout, const Panel& panel,
                 const TimelineOptions& options);

/// What the top of every strip stands for: the limit if any rank comes near it, else the highest
/// peak.
Bytes memory_top(const Trace& trace, std::span<const Bytes> limits);

/// A point of a step curve: the memory is `bytes` from `x` on.
struct MemoryPoint {
  double x = 0;
  Bytes bytes{0};
  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};
/// The samples on paper. Of samples closer than half a pixel the largest and the last are kept, so
/// peaks stay.
std::vector<MemoryPoint> memory_points(std::span<const MemorySample> samples,
                                       const TimeScale& scale);

}  // namespace pfeife::plots
