// The simulator: how long a schedule takes on a cluster whose links are shared, by discrete events.
//
// It runs the DependencyGraph as the estimator does, but transfers are flows that share the links
// they cross by max-min fairness (SimGrid), and durations may vary. With graph.semantics.links ==
// Delay, no jitter and the same launch overhead it gives the estimator's Trace to the nanosecond.
// What replicas reduce is a flow over its device's ring. Other reductions and optimizer steps are
// of fixed length; ranks on one device do not slow each other down. Not modelled: protocols,
// congestion control, copies that take compute time.
//
// Simulations run in processes of their own: one engine a process is all that SimGrid allows. A
// small server forks them (sim/server), never the caller; several threads may simulate at once.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/jitter.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

struct SimulationOptions {
  Nanoseconds launch_overhead{0};  ///< added in front of every compute cell and optimizer step
  Jitter jitter;                   ///< of compute, transfers and (drift only) optimizer steps
  std::uint64_t repetition = 0;    ///< which of the runs with this jitter
};

/// Whether this program was built with SimGrid. If not, the functions below throw RuntimeFault.
bool simulator_available();

/// Runs the graph on the cluster: a Trace (without memory: planner/cost/estimate/memory.h), or the
/// tasks that can never run. A transfer alone on its way takes the time that `costs` says. Errors:
/// RuntimeFault if the run fails.
std::variant<Trace, Deadlock> simulate(const DependencyGraph& graph, const StageCosts& costs,
                                       const Placement& placement, const Cluster& cluster,
                                       const SimulationOptions& options = {});

/// A simulation to be made by simulate_all(). What it points to must live until then.
struct SimulationJob {
  std::string name;  ///< for messages
  const DependencyGraph* graph = nullptr;
  const StageCosts* costs = nullptr;
  const Placement* placement = nullptr;
  const Cluster* cluster = nullptr;
  Nanoseconds launch_overhead{0};
  Jitter jitter;
  std::size_t repetitions = 0;  ///< runs with jitter besides the one without
  bool trace = false;           ///< keep the trace of the run without jitter
};

struct SimulationResult {
  std::optional<Deadlock> deadlock;      ///< then nothing else is filled in
  Nanoseconds step_time{0};              ///< without jitter
  std::vector<Nanoseconds> repetitions;  ///< with jitter, [repetition]
  std::optional<Trace> trace;

  /// A quantile of the repetitions; the step time if there are none.
  Nanoseconds quantile(double p) const;
  friend bool operator==(const SimulationResult&, const SimulationResult&) = default;
};

struct SimulationPool {
  std::size_t workers = 0;                                            ///< processes; 0 = one a core
  std::function<void(std::size_t done, std::size_t total)> progress;  ///< runs, repetitions counted
};

/// All jobs on a pool of processes; results in the order of the jobs, the same for any number of
/// workers. Errors: RuntimeFault that names the job if a run fails or its process dies; the other
/// processes are then stopped.
std::vector<SimulationResult> simulate_all(std::span<const SimulationJob> jobs,
                                           const SimulationPool& pool = {});

}  // namespace pfeife
