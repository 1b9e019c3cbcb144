// A third opinion on what a lowered schedule does, for tests: rank programs and queues, followed
// step by step, without a dependency graph.
//
// The hosts issue everything at once. A rank computes its cells one after the other, each as soon
// as the values it needs have reached the rank. A transfer starts when its value is made and it is
// first in the queues of both ranks; a blocking SEND or RECV keeps its rank until the transfer is
// over. A copy starts once the rank has passed what holds it before the copy and the copy is first
// on its engine. A reduction starts when all weight gradients of its stages are made; a blocking
// one also waits until each rank is at the last of its REDUCE_GRADs, and keeps the ranks until it
// is over. Time jumps from one end to the next.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife::testing {

/// Where an item stands: a compute cell or optimizer step by its place, a transfer by that of its
/// SEND, a copy by its place, a reduction by its first REDUCE_GRAD.
struct Stand {
  std::size_t rank = 0, position = 0;
  friend auto operator<=>(const Stand&, const Stand&) = default;
};
struct Ran {
  Nanoseconds start{0}, end{0};
  friend bool operator==(const Ran&, const Ran&) = default;
};
struct Outcome {
  std::map<Stand, Ran> ran;
  std::set<Stand> blocked;  ///< never ran: a deadlock if there are any
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// Runs a schedule whose actions are complete and whose transfers match; it may deadlock. `launch`
/// comes before every compute cell and optimizer step. Slow: every step looks at everything.
Outcome interpret(const Schedule& lowered, const StageCosts& costs, const Placement& placement,
                  const Semantics& semantics, Nanoseconds launch = Nanoseconds{0});

}  // namespace pfeife::testing
