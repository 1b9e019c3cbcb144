// `profile: measure` and `cluster: measure`: files that pfeife-run makes on this machine, once.
//
// They are kept in the folder of results under names that hold a digest of all that decides them
// (machine, model, precision, optimizer, microbatch size), so one that is there is the right one.
#pragma once

#include <filesystem>

#include "experiments/inputs/inputs.h"
#include "planner/io/experiment/experiment_config.h"

namespace pfeife {

/// Writes into every case where its measured inputs are, or will be: below FOLDER/measured.
void place_measured_inputs(Experiment& experiment, const std::filesystem::path& folder);

/// Makes those that are missing (all of them if `again`), after a line on standard error unless
/// `quiet`. Errors: RuntimeFault if pfeife-run fails, ConfigError if this machine has fewer devices
/// than a case asks for.
void make_measured_inputs(const Experiment& experiment, Inputs& inputs, bool again, bool quiet);

/// Profiles the model of a case with a measured profile for `repetitions` steps of each kind. The
/// profile is then that of all shares since forget_shares(); what was timed is kept beside it.
/// Errors: RuntimeFault if pfeife-run fails.
void profile_share(const CaseConfig& config, int repetitions);
/// Removes the profile of a case, and what its shares have timed.
void forget_shares(const CaseConfig& config);

/// Gives cases that are measured with a measured profile what their profile found, if it is there
/// yet and the config says nothing of it: the variation as jitter, so that predictions say how far
/// steps may be off, and the executor's own time for an action as launch overhead.
void use_profiled_settings(Experiment& experiment);
void use_profiled_settings(CaseConfig& config);

}  // namespace pfeife
