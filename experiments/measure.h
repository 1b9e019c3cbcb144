// Plans run for real: the third column.
#pragma once

#include <filesystem>

#include "experiments/evaluate.h"
#include "experiments/inputs.h"

namespace pfeife {

/// Refuses, before anything starts, cases that this machine cannot measure: without pfeife-run,
/// with more ranks than processors (they would take turns, and the times would mean nothing), or
/// with devices that are no processors. Errors: ConfigError.
void check_measurable(const Experiment& experiment, Inputs& inputs);

/// Trains FOLDER/plan.yaml for the config's number of steps, leaves measurement.csv in FOLDER, and
/// fills plan.measured and plan.measurement; if the run failed, plan.measure_failure says why.
void measure_plan(Evaluation& plan, const std::filesystem::path& folder);

/// What decides how fast this machine is, as a line: part of the digest of what was measured on it.
std::string machine_line();

}  // namespace pfeife
