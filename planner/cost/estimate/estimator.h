// The estimator: how long a schedule takes if links never contend, as the longest path over the
// DependencyGraph.
//
// Three forms of the same computation: estimate() gives a whole Trace; makespan() only the time,
// for a compiled graph; makespans() the time for many duration vectors at once. All are exact in
// integer nanoseconds. Not modelled: contention of links (sim/), jitter, anything the host does
// besides a fixed launch overhead.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

struct EstimateOptions {
  Nanoseconds launch_overhead{0};  ///< added in front of every compute cell and optimizer step
};

/// Runs the graph under `costs`. Links are delays whatever graph.semantics.links says. Memory is
/// not filled in: see memory.h. Linear in tasks and edges.
std::variant<Trace, Deadlock> estimate(const DependencyGraph& graph, const StageCosts& costs,
                                       const EstimateOptions& options = {});

/// A graph reduced to what its makespan needs: one instruction a task, in a topological order,
/// transfers that wait for nothing but their value folded into the edge.
class CompiledGraph {
 public:
  /// The graph must be free of deadlock. Linear.
  explicit CompiledGraph(const DependencyGraph& graph);

  std::size_t slots() const { return slots_; }
  std::size_t compute_nodes() const { return compute_nodes_; }

  /// Longest path; `durations` by slot, in ns, as slot_durations() gives them.
  std::int64_t makespan(std::span<const std::int64_t> durations) const;

  static constexpr std::size_t kLanes = 16;
  /// Longest paths of up to any number of duration vectors at once: `durations[slot * count + i]`
  /// in integer ns below 2^53 in total, `out[i]`, i < count.
  void makespans(std::span<const double> durations, std::size_t count, std::span<double> out) const;

 private:
  /// end[i] = max(end[before], end[value] + duration[delay]) + duration[work]; index 0 of ends and
  /// the slot past the last are zero.
  struct Instruction {
    std::uint32_t before, value, delay, work;
  };
  std::size_t slots_ = 0;
  std::size_t compute_nodes_ = 0;
  std::vector<Instruction> program_;
};

}  // namespace pfeife
