// Several plans of one case on one time axis, one above the other, each with the bound on its
// class.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/ir/result/covered.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

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

}  // namespace pfeife
