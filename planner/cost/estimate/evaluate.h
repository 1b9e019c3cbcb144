// One candidate in full: a schedule with its cuts, lowered, priced and weighed. The slow, complete
// way; the search's inner loops and every report go through it so that there is one truth.
#pragma once

#include <vector>

#include "planner/cost/estimate/reference_memory.h"
#include "planner/cost/stages/summed_layers.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/choice.h"
#include "planner/ir/result/step_norm.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// What a choice costs.
struct Prices {
  StageCosts costs;
  Schedule lowered;
  Nanoseconds estimate{0};                ///< contention-free step time
  std::vector<Bytes> peak_memory;         ///< [rank]
  Receives receives = Receives::AsReady;  ///< of `lowered`
};

/// Lowers `compute_only` for the costs of `partition`, estimates it with free queues and delay
/// links, and takes the peak memory of every rank by `rule`. All optimizer steps wait for `norm`.
/// Rows of slices have the costs of slices so long. The schedule must be acyclic (ConfigError by
/// lower() otherwise).
Prices evaluate(const SummedLayers& sums, const Cluster& cluster, const Schedule& compute_only,
                const Placement& placement, const Partition& partition,
                MemoryRule rule = MemoryRule::Lifetimes, const Activations& activations = {},
                StepNorm norm = StepNorm::None, SliceLengths slice_lengths = SliceLengths::Equal);
/// The prices where messages are received late: its peaks are no higher, its estimate is the same.
Prices received_late(Prices prices, const Placement& placement);
/// [rank] No order of receiving needs less, whether its rows can hang or not.
std::vector<Bytes> least_peak_memory(const Prices& prices, const Placement& placement);
/// The same of a schedule that is `lowered` already, for these costs, by MemoryRule::Lifetimes.
Prices evaluate_lowered(StageCosts costs, Schedule lowered, const Placement& placement);

}  // namespace pfeife
