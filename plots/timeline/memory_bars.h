// What fills the memory of each rank at its peak: a stacked bar a rank, the plans of a case one
// above the other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/ir/units.h"
#include "plots/figure/theme.h"

namespace pfeife {

/// The terms of a rank's peak, which add up to it exactly.
struct MemoryContents {
  Bytes parameters{0}, gradients{0}, optimizer{0};  ///< held throughout
  Bytes saved{0};                                   ///< from forward to backward
  Bytes held_for_weights{0};                        ///< from I to W
  Bytes buffers{0};  ///< received and not used yet, made and not sent yet
  Bytes temporary{0};
  Bytes total() const {
    return parameters + gradients + optimizer + saved + held_for_weights + buffers + temporary;
  }
  friend bool operator==(const MemoryContents&, const MemoryContents&) = default;
};

struct PlanMemory {
  std::string name;                   ///< "zb_greedy, V=3"
  std::vector<MemoryContents> ranks;  ///< [rank], estimated
  std::vector<Bytes> limits;          ///< [rank]; empty = none is known
};

/// An SVG document, to one scale; figures as tooltips, limits dashed. Bars of more than twice the
/// highest limit are cut there: the figure at their end says how much they are.
std::string memory_bars_svg(std::span<const PlanMemory> plans, int width);

}  // namespace pfeife
