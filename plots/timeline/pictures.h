// Pictures of a case and of its plans, besides a timeline; each is in a source of its name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/result/covered.h"
#include "planner/ir/result/figures.h"
#include "planner/ir/trace/trace.h"
#include "plots/figure/theme.h"

namespace pfeife {

// Several plans of one case on one time axis, one above the other, each with the bound on its
// class.

struct ComparedPlan {
  std::string name;  ///< "zb_greedy, V=3"
  Trace trace;
  bool fits = true;
  std::string speed_up = {};  ///< "1.36x of 1f1b", beside the name; "" = not said
  /// That covers it. A line goes through plans that follow each other with the same bound, and
  /// through no others.
  std::optional<CoveringBound> bound = {};
};

struct PlansOptions {
  std::string title;  ///< "" = none
  int width = 900;    ///< pixels, at least 320
  bool legend = true;
};

/// An SVG document with a row a rank and plan, true to one scale; what is sent and memory are left
/// to timeline.h. Boxes of one kind are one path without tooltips: about 25 bytes a box. Equal
/// input gives equal bytes.
std::string plans_svg(std::span<const ComparedPlan> plans, const PlansOptions& options);

// Where the time of each rank goes: a stacked bar a rank, the plans of a case one above the other.

/// The terms of a rank's step, which add up to it exactly: what it computes, by kind; its idle time
/// before its first computation and after its last (warm-up, cool-down) and, of the idle time
/// between, as much as it has less to compute than the busiest rank (imbalance) and the rest
/// (steady state); the other terms of its attribution. Only dependency waits are split: what it
/// waits for transfers and queues is theirs.
std::vector<plots::Cause> rank_times(const Trace& trace, RankId rank);

/// An SVG document, to one scale; figures as tooltips.
std::string rank_times_svg(std::span<const ComparedPlan> plans, int width);

// What fills the memory of each rank at its peak: a stacked bar a rank, the plans of a case one
// above the other.

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

// Where a model is cut: its layers in order, once as wide as they take time, once as they need
// memory, coloured by the rank that has them.

struct RibbonLayer {
  std::string name;
  std::size_t stage = 0;
  Nanoseconds time{0};  ///< forward and backward of one microbatch, estimated
  Bytes held{0};        ///< parameters, gradients, optimizer state
  Bytes saved{0};       ///< by one microbatch
};

struct Ribbon {
  std::string name;  ///< "zb_greedy, V=3"
  std::vector<RankId> rank_of_stage;
  std::vector<RibbonLayer> layers;  ///< in the order of the model
};

/// An SVG document; figures of stages and layers as tooltips. Layers thinner than a few pixels are
/// drawn together. "" without layers.
std::string partition_svg(const Ribbon& ribbon, int width);

// How full each link is over a simulated step: a row a link, true to one scale of time.

/// An SVG document of trace.links; the fullest first, 16 at most. What varies within a pixel of
/// time is drawn as its mean. At the end of a row: its mean load, its capacity, and by how much
/// transfers last longer because it is shared. "" without links.
std::string link_loads_svg(const Trace& trace, int width);

}  // namespace pfeife
