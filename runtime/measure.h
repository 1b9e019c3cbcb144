// Steps of a pipeline, timed: what the third column of a comparison shows.
#pragma once

#include <functional>
#include <string>

#include "planner/io/measurement_file.h"
#include "runtime/pipeline.h"

namespace pfeife {

/// Trains for some steps on synthetic data, all ranks starting each step together; the first two
/// only warm up if there are more. The result is rank 0's; empty elsewhere.
Measurement measure_steps(const Pipeline& pipeline, RankId rank, const WeightSource& source,
                          const RankOptions& options, int steps, RandomTurns& turns,
                          const std::function<void(const Cell&)>& entering, Transport& transport);

/// A line for people; `samples` = of one step.
std::string summary(const Measurement& measurement, double samples);

}  // namespace pfeife
