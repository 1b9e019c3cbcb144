// What profilers saw of each rank, on clocks that do not agree, and the trace of the plan that it
// makes: clocks are brought together by what must have come after what.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/schedule/action.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/trace/trace.h"

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

/// A message: on clock `receiver` it was there at `received`, so that it was not sent after.
struct ClockBound {
  std::size_t sender = 0, receiver = 0;  ///< clocks
  Nanoseconds sent{0}, received{0};      ///< by the clock of each
};

/// What is added to a clock's times to have those of clock 0, and how far off that may be.
struct ClockOffset {
  Nanoseconds offset{0};
  Nanoseconds error{0};  ///< half of what messages in both directions leave open
  friend bool operator==(const ClockOffset&, const ClockOffset&) = default;
};

/// The middle of what the messages allow, for every clock; they allow all middles at once. None if
/// no offsets would let every message arrive after it was sent. `unbounded` is filled with a clock
/// that no chain of messages ties to clock 0 from both directions, and the offsets are none.
/// Cubic in clocks.
std::optional<std::vector<ClockOffset>> clock_offsets(std::size_t clocks,
                                                      std::span<const ClockBound> messages,
                                                      std::optional<std::size_t>& unbounded);

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
