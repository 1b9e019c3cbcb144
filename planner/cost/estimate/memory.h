// Memory of a rank: a function of its lowered row and the costs alone, never of times, unless
// values are offloaded.
//
// Held: parameters, gradients and optimizer state throughout; a receive buffer from its RECV to the
// end of the action that uses it; a value that leaves the stage from its F until its last SEND (on
// the same rank: until the F that reads it is done); `saved` from F to B or I; `weight_saved` from
// I to W; temporaries within an action (stage_temporary.h), and what B or I of a recomputed stage
// restores; what S of a shared output layer keeps for T; of the microbatch that a stage runs
// forward last, as StageCosts::last says. Slices hold what StageCosts::slices says, and gradients
// of keys and values from the backward of the microbatch's last slice to their own. A value is one
// storage: while several of these hold it, it counts once. What a stage offloads of a microbatch is
// held from its F to the end of its OFFLOAD and from its RELOAD to the end of its B or I, at the
// times of the estimate. Not modelled: an OFFLOAD that other work delays; messages that come before
// the row receives them, because another rank is ahead; copies while gradients of tied parameters
// are reduced; fragmentation, the allocator's rounding, buffers of the communication library
// (DeviceKind::reserve).
#pragma once

#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

/// Memory while and after one cell of a row.
struct MemoryStep {
  Bytes during{0};  ///< highest while the cell runs
  Bytes after{0};
  friend bool operator==(const MemoryStep&, const MemoryStep&) = default;
};

/// [rank] The most that is in the host's memory at once: from OFFLOAD to the end of RELOAD, at the
/// times of the estimate. Empty if no row has copies.
std::vector<Bytes> host_peak_memory(const Schedule& lowered, const StageCosts& costs,
                                    const Placement& placement);
/// [host] The sum over the ranks of each host, of Cluster::devices_per_node devices, each rank at
/// its highest. Empty if no row has copies.
std::vector<Bytes> memory_of_hosts(const Schedule& lowered, const StageCosts& costs,
                                   const Placement& placement, const Cluster& cluster);

struct MemoryCurve {
  Bytes fixed{0};                 ///< before the first cell
  std::vector<MemoryStep> steps;  ///< [cell of the row]
  Bytes peak() const;
  friend bool operator==(const MemoryCurve&, const MemoryCurve&) = default;
};

/// Memory over the row of `rank`. The schedule must be lowered and valid. Linear in the row times
/// the values per stage.
MemoryCurve memory(const Schedule& lowered, RankId rank, const StageCosts& costs,
                   const Placement& placement);

/// memory(...).peak() of every rank.
std::vector<Bytes> peak_memory(const Schedule& lowered, const StageCosts& costs,
                               const Placement& placement);

/// Fills trace.memory: the curve of each rank, laid over the times of the trace's compute events.
/// What a RECV or SEND changes happens at the end of the compute before it in the row.
void add_memory(Trace& trace, const DependencyGraph& graph, const Schedule& lowered,
                const StageCosts& costs, const Placement& placement);

}  // namespace pfeife
