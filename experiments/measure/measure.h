// Plans run for real: the third column.
#pragma once

#include <filesystem>

#include "experiments/inputs/inputs.h"
#include "experiments/plans/evaluate.h"

namespace pfeife {

/// Refuses, before anything starts, cases that this machine cannot measure: without pfeife-run,
/// with more ranks than processors (they would take turns, and the times would mean nothing), or
/// with devices that are no processors. Errors: ConfigError.
void check_measurable(const Experiment& experiment, Inputs& inputs);

/// Trains FOLDER/plan.yaml for the config's number of steps, leaves measurement.csv in FOLDER, and
/// fills plan.measured and plan.measurement; if the run failed, plan.measure_failure says why.
void measure_plan(Evaluation& plan, const std::filesystem::path& folder);

}  // namespace pfeife
