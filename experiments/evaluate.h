// From plans to their times: both engines, over many plans at once.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "experiments/plan_case.h"
#include "planner/io/experiment/experiment_config.h"
#include "planner/io/results/measurement_file.h"
#include "planner/ir/trace.h"

namespace pfeife {

/// Percentiles of the step time of many runs whose durations vary.
struct Spread {
  Nanoseconds p5{0}, median{0}, p95{0};
};

/// A candidate and what is known of it. Addresses inside are given away: make all, then evaluate.
struct Evaluation {
  const CaseConfig* config = nullptr;
  const Layers* layers = nullptr;
  const Cluster* cluster = nullptr;
  Candidate candidate;
  StageCosts costs;
  std::vector<Bytes> peak_memory, memory_limit;  ///< [rank]
  Trace estimated;
  std::optional<Trace> simulated;
  std::optional<Spread> estimated_spread, simulated_spread;  ///< with jitter
  std::optional<Measurement> measurement;
  double others = 0;            ///< as in MeasuredRun
  std::string measure_failure;  ///< why there is none; "" if it was not asked for

  bool possible() const { return candidate.reason.empty(); }
  bool fits() const;
  /// The trace of the best engine present.
  const Trace& best() const { return measurement ? measurement->trace : predicted(); }
  /// The trace of the best engine that does not run the plan.
  const Trace& predicted() const { return simulated ? *simulated : estimated; }
};

/// Costs, memory and estimate of a candidate, with percentiles if the config has jitter; nothing
/// for one that cannot be.
Evaluation estimate_candidate(const CaseConfig& config, const Layers& layers,
                              const Cluster& cluster, Candidate candidate);

/// What a rank that runs the plan executes: event i of every engine's trace is task i of it.
DependencyGraph executed_graph(const Evaluation& plan);

/// Simulates every possible plan whose config asks for it, with `workers` processes. Errors:
/// RuntimeFault.
void simulate_plans(std::span<Evaluation* const> plans, std::size_t workers);

/// The 95th percentile of the best engine that has one.
std::optional<Nanoseconds> p95(const Evaluation& plan);

/// The one to choose among planned candidates by `select_by`; the first of equally good ones. Those
/// that fit their devices come before those that do not.
std::size_t select(std::span<const Evaluation> planned, SelectBy select_by);

}  // namespace pfeife
