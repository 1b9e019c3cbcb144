// Steps of a pipeline, timed: what the third column of a comparison shows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/pipeline.h"

namespace pfeife {

struct Measurement {
  std::vector<Nanoseconds> steps;  ///< time of each, by its trace; the first ones warm up
  std::vector<double> losses;      ///< mean of each step
  Trace trace;                     ///< of the step with the median time
  double samples_per_step = 0;
  Nanoseconds median() const;  ///< of the steps after the first two, if there are more
};

/// Trains for some steps on synthetic data, all ranks starting each step together. The result is
/// rank 0's; empty elsewhere.
Measurement measure_steps(const Pipeline& pipeline, RankId rank, const WeightSource& source,
                          const RankOptions& options, int steps, RandomTurns& turns,
                          const std::function<void(const Cell&)>& entering, Transport& transport);

/// For people.
std::string to_string(const Measurement& measurement);
/// measurement.csv: `step,time_ns,loss` a line for each step; then a blank line and
/// `rank,peer,action,start_ns,end_ns`, the median step's trace.
std::string measurement_text(const Measurement& measurement);

}  // namespace pfeife
