// measurement.csv: what a run of a plan took, as `pfeife-run train --out` writes it.
//
// Four tables, an empty line between them: `step,counts,time_ns,loss,round`, a line a step, counts
// = 0 for those that only warm up; `rank,peak_memory_bytes`, empty where nothing was counted;
// `rank,peer,action,start_ns,end_ns,median_ns`, the trace of the step with the median time, and the
// median duration of each action over the steps that count; `format_version`, 2. A round is a run
// of the program; of several, the peaks are the highest, the trace is that of the round with the
// median time, and durations are medians over the rounds.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

struct MeasuredStep {
  bool counts = true;  ///< false: it only warms up
  Nanoseconds time{0};
  double loss = 0;
  std::size_t round = 0;  ///< rounds are numbered from 0, in the order of the steps
};

struct Measurement {
  std::vector<MeasuredStep> steps;
  std::vector<Bytes> peak_memory;      ///< [rank] of the steps; empty = not counted
  Trace trace;                         ///< of the step with the median time
  std::vector<Nanoseconds> durations;  ///< [event] median over the steps that count

  /// The smallest time that at least the share `p` of the counting steps does not exceed; 0.5 =
  /// median.
  Nanoseconds quantile(double p) const;
  /// [round] the median, by nearest rank, of the counting steps of each.
  std::vector<Nanoseconds> round_medians() const;
  /// The median of round_medians(), the lower of two; of one round quantile(0.5). trace takes it.
  Nanoseconds step() const;
};

/// Which step has the median time: the nearest rank among those that count, the earlier of equals.
std::size_t median_step(const std::vector<MeasuredStep>& steps);

/// [event] the median duration (the lower of two) over those of the steps' traces that count.
std::vector<Nanoseconds> median_durations(const std::vector<Trace>& traces,
                                          const std::vector<MeasuredStep>& steps);

/// Rounds of one plan as one measurement. Every one must have a step that counts.
Measurement joined(std::span<const Measurement> rounds);

std::string measurement_text(const Measurement& measurement);

/// Reads a measurement of a plan whose tasks are `graph`. Errors: ConfigError with the place: other
/// columns, actions that are not those of the graph, no step that counts.
Measurement read_measurement(const std::filesystem::path& file, const DependencyGraph& graph);

}  // namespace pfeife
