// What fills the memory of each rank at its peak: a stacked bar a rank, the plans of a case one
// above the other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/ir/result/memory_contents.h"
#include "plots/figure/theme.h"

namespace pfeife {

namespace plots {
/// One term of MemoryContents, as pictures show it.
struct MemoryPart {
  const char* name;
  Bytes MemoryContents::*bytes;
  Color fill;
};
/// All of them, in the order of their bars.
std::vector<MemoryPart> memory_parts();
}  // namespace plots

struct PlanMemory {
  std::string name;                   ///< "zb_greedy, V=3"
  std::vector<MemoryContents> ranks;  ///< [rank], estimated
  std::vector<Bytes> limits;          ///< [rank]; empty = none is known
};

/// An SVG document, to one scale; figures as tooltips, limits dashed on a halo. Bars of more
/// than twice the highest limit are cut there and end in a tear: the figure beside it says how much
/// they are.
std::string memory_bars_svg(std::span<const PlanMemory> plans, int width);

}  // namespace pfeife
