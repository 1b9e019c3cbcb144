// A DependencyGraph under given costs, laid out for running: who follows whom, and what each task
// does where.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/simulator.h"

namespace pfeife {

/// Between two devices; or a stage's ring: what its replicas reduce goes out of a device and into
/// it.
struct FlowRoute {
  DeviceId from, to;
  std::optional<StageId> ring;  // of a ring
  std::vector<std::size_t>
      links;                // that a flow crosses, at least one; indices into Workload::links
  BytesPerSecond capacity;  // of the narrowest of them; of a ring, the part that it takes
};

/// What a task does: `fixed` and then `busy`, alone.
struct WorkItem {
  enum class How : std::uint8_t {
    Compute,  // on the rank, one at a time
    Timer,    // passes beside it: delays, reductions that share no link
    Flow,     // `bytes` over a route, which take `busy` if nothing else does
  };
  How how = How::Compute;
  TaskKind kind = TaskKind::Compute;
  std::uint32_t rank = 0;
  std::uint32_t route = 0;
  Nanoseconds fixed{0};  // launch, latency, and what does not vary with jitter
  Nanoseconds busy{0};
  Bytes bytes{0};
};

struct Workload {
  std::size_t ranks = 0;
  std::vector<WorkItem> items;        // [task]
  std::vector<FlowRoute> routes;      // in the order in which tasks first need them
  std::vector<BytesPerSecond> links;  // capacities; in the order in which routes first need them
  std::vector<std::uint32_t> waits;   // [task] how many edges lead into it
  std::vector<std::uint32_t> next_begin;  // [task + 1]
  std::vector<std::uint32_t> next;        // tasks that wait for it

  std::size_t size() const { return items.size(); }
};

/// Linear in tasks and edges.
Workload workload_of(const SimulationJob& job);

/// The Trace of a run with these end times.
Trace trace_of(const DependencyGraph& graph, std::span<const std::int64_t> ends,
               Nanoseconds launch_overhead);

}  // namespace pfeife
