// What a profiler saw of one rank, on a clock of its own: actions, some steps one after the other.
// observed_run.h makes a trace of it.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/schedule/action.h"

namespace pfeife {

/// One action in one step.
struct ObservedAction {
  /// F, B, I, W, an overlap, an optimizer step; or a SEND. A stage below 0: the rank's only one.
  Cell cell;
  Nanoseconds start{0}, end{0};  ///< of its work; a SEND's start is when it was posted
  Nanoseconds busy{0};           ///< of that in operators or kernels; at most end - start
  bool arrives = false;          ///< of a SEND: it ends when the receiver has its value
};

struct ObservedRank {
  std::string file;       ///< to name in messages
  std::size_t clock = 0;  ///< ranks of equal numbers have one clock
  RankId rank;
  std::vector<ObservedAction> actions;  ///< in any order
};

}  // namespace pfeife
