// What happened or will happen when a plan runs: of the estimator, the simulator, the runtime.
//   std::printf("%s, %.1f %% idle\n", to_string(step_time(trace)).c_str(), 100 * bubble(trace));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/trace/link_load.h"

namespace pfeife {

enum class TraceSource { Estimated, Simulated, Measured, Imported };
std::string to_string(TraceSource source);

/// One task as it ran.
struct Event {
  TaskKind kind = TaskKind::Compute;
  RankId rank;                  ///< sender of a transfer
  RankId peer;                  ///< receiver of a transfer; = rank otherwise
  std::vector<RankId> parties;  ///< of a reduction
  Cell cell;                    ///< the action; the SEND of a transfer
  Nanoseconds posted{
      0};  ///< everything it needed was there, except its turn in a queue or on its rank
  Nanoseconds start{0}, end{0};  ///< launch included in [start, end)
  Nanoseconds launch{0};         ///< leading part of [start, end) that is launch overhead
  std::optional<std::size_t>
      waited_for;  ///< the event that ended last among those it had to wait for
  friend bool operator==(const Event&, const Event&) = default;
};

/// Memory of a rank from `time` on.
struct MemorySample {
  Nanoseconds time{0};
  Bytes bytes{0};
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

struct Trace {
  TraceSource source = TraceSource::Estimated;
  std::size_t ranks = 0;
  std::vector<Event> events;                      ///< event i = task i of the DependencyGraph
  std::vector<std::vector<MemorySample>> memory;  ///< [rank], times never decrease; may be empty
  std::vector<LinkLoad> links;  ///< of a simulation with shared links; may be empty
  friend bool operator==(const Trace&, const Trace&) = default;
};

/// Moves every RELOAD of an engine's run to where it ends as late as possible, with nothing else
/// moved: so it takes up memory no sooner than it must. For engines; linear.
void start_reloads_late(Trace& trace, const DependencyGraph& graph);

/// Start of the first event to end of the last. 0 without events.
Nanoseconds step_time(const Trace& trace);
/// Time the rank computes (F, B, I, W, overlaps, optimizer), launch left out.
Nanoseconds busy_time(const Trace& trace, RankId rank);
/// 1 - sum of busy times of F, B, I, W (not the optimizer) / (ranks x step time), in [0, 1]; 0
/// without events.
double bubble(const Trace& trace);
double bubble(const Trace& trace, RankId rank);
/// The rank whose last event ends last; the lowest number if several.
RankId critical_rank(const Trace& trace);
/// Largest sample of the rank; 0 if there are none.
Bytes peak_memory(const Trace& trace, RankId rank);

/// Every nanosecond of a rank, from the start of the step to its end, by cause. The terms add up to
/// the step exactly.
struct Attribution {
  Nanoseconds compute{0};           ///< F, B, I, W
  Nanoseconds dependency_wait{0};   ///< for another rank's compute, or after its last action
  Nanoseconds exposed_transfer{0};  ///< for a transfer or copy under way
  Nanoseconds queue_wait{0};  ///< for a transfer that was ready but not at the head of its queue
  Nanoseconds launch{0};
  Nanoseconds reduction{0};
  Nanoseconds optimizer{0};

  Nanoseconds total() const {
    return compute + dependency_wait + exposed_transfer + queue_wait + launch + reduction +
           optimizer;
  }
  friend bool operator==(const Attribution&, const Attribution&) = default;
};
Attribution attribution(const Trace& trace, RankId rank);

}  // namespace pfeife
