// What profilers saw of the ranks, as the trace of a plan.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/trace/clock_offsets.h"
#include "planner/ir/trace/observed_rank.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

/// Steps of a plan as they ran, on one clock.
struct ObservedRun {
  std::vector<Trace> steps;  ///< event i = task i; `launch` is what operators leave uncovered
  /// [step][task] of transfers: the end is when the value came, since its receiver recorded that or
  /// had waited for nothing else since before it was sent.
  std::vector<std::vector<bool>> watched;
  std::vector<ClockOffset> clocks;  ///< [clock]; the largest of all steps if each has its own
  bool drifting = false;            ///< no offsets hold for all steps, so that each has its own
  bool optimizer = true;            ///< false: the profiles have no optimizer steps; they take 0
};

/// Finds the tasks of `graph` among the actions: the k-th occurrence of each is in step k. A
/// transfer begins when it was posted, or else when its value was made; it ends when its receiver
/// went on. But if the receiver was busy until then, nobody saw it arrive: then it takes as long as
/// `predicted`, or until the receiver could look; and what an overlap reads, as long as
/// `predicted`, or until the overlap ends. Errors: ConfigError naming file, rank and action: ranks
/// that are missing or twice there, actions of another plan, in another order, or not equally
/// often, and messages that contradict one another.
ObservedRun observed_run(const DependencyGraph& graph, const Trace& predicted,
                         std::span<const ObservedRank> ranks);

/// The same plan where optimizer steps take no time: what it is compared with if they were not
/// observed.
Trace without_optimizer(const DependencyGraph& graph, const Trace& trace);

}  // namespace pfeife
