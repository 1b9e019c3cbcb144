// A sweep for somebody who watches: a first table after little effort, whose files stand until
// better plans replace them, and what the further effort was worth.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/inputs/inputs.h"
#include "experiments/sweep/sweep.h"
#include "planner/io/experiment/experiment_config.h"

namespace pfeife {

/// Effort (plan.iterations) of the first table: a third of the time.
inline constexpr std::size_t kFirstEffort = 150;

/// The experiment with little effort for the cases that are to be searched and not computed yet.
/// Nothing if there are none or more than `most`; a config that says how much effort is meant has
/// none.
std::optional<Experiment> first_answer(const Experiment& experiment, Inputs& inputs,
                                       const SweepOptions& options, std::size_t most);

/// The cases that were computed with all effort, and of the others those of `first`.
Experiment best_so_far(const Experiment& experiment, const Experiment& first, Inputs& inputs,
                       const SweepOptions& options);

/// Names of the cases that have less effort than in `experiment`, and whose plan is above its
/// bound.
std::vector<std::string> still_moving(const SweepResult& result, const Experiment& computed,
                                      const Experiment& experiment);

/// What the effort after the first table was worth, in a line: "zb_greedy V=3
/// (devices=4,microbatches=8): 0.2 % since 20 s; 3 of 6 plans are faster, none by more".
std::string gained(const SweepResult& first, const SweepResult& result, double first_seconds);

}  // namespace pfeife
