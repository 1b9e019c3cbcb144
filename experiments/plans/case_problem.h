// What is searched in a case: its problem for the search, once per way to settle what the config
// leaves open.
#pragma once

#include "experiments/plans/choices.h"
#include "experiments/plans/evaluate.h"
#include "planner/search/problem.h"

namespace pfeife {

/// The schedules that are compared in each way to settle what the case leaves open. Errors:
/// ConfigError if it cannot have these schedules or cuts.
std::vector<std::vector<ScheduleSpec>> searched_schedules(const Request& config,
                                                          const Layers& layers);

/// The ways to settle a case, without the ways that a family named in the config cannot do.
std::vector<SettledCase> possible_cases(const Request& config, const Layers& layers,
                                        const LayersOf& layers_of);

/// What a search may allocate on the device: less than its limit where no lifetimes are known and a
/// factor stands for the allocator.
Bytes searched_limit(const Request& config, const Problem& problem, DeviceId device);
/// These limits and the allocator of a problem that has its layers, cluster and devices.
void set_memory(const Request& config, Problem& problem);

/// step_norm() of the plans of a request, as a search must know it beforehand. A single device has
/// nothing to exchange.
StepNorm step_norm(const Request& config, const Layers& layers);

/// The problem of a settled case, on the first devices and without recomputation. Borrows from
/// both.
Problem problem_of(const SettledCase& settled, const Cluster& cluster);

/// The problem where that may be recomputed, the last microbatch too unless `except_last`.
Problem recomputing(Problem problem, Recompute recompute, bool except_last);

/// The same with the memory rule of the reference system: it takes 85 % of a device.
Problem reference_problem(Problem problem);

/// What was searched in a case with nothing left open. Borrows from `settled`.
Problem settled_problem(const CaseInputs& settled, Recompute recompute);

}  // namespace pfeife
