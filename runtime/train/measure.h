// Steps of a pipeline, timed: what the third column of a comparison shows.
#pragma once

#include <functional>
#include <string>

#include "planner/io/results/measurement_file.h"
#include "runtime/execute/rank_pipeline.h"

namespace pfeife {

struct MeasuredTraining {
  Measurement measurement;
  std::vector<Trace> steps;  ///< those that count
  std::string clocks;        ///< of several hosts, for people; "" on one
};

/// Trains for some steps on synthetic data, all ranks starting each step together; the first two
/// only warm up if there are more. Traces are of the first replica. With `count_memory`, peaks are
/// the highest that RankMemory counted in steps that count (on CPUs that takes count_allocations()
/// and a process for each rank): parameters that are mapped from a file included, the step's inputs
/// (the data loader's) not. The result is rank 0's; empty elsewhere.
MeasuredTraining measure_steps(const Pipeline& pipeline, RankId rank, const WeightSource& source,
                               const RankOptions& options, int steps, bool count_memory,
                               RandomTurns& turns, const std::function<void(const Cell&)>& entering,
                               Transport& transport);

/// A line for people; `samples` = of one step.
std::string summary(const Measurement& measurement, double samples);

}  // namespace pfeife
