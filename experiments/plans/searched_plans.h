// Plans that the search finds: the schedules that a config lists, in every way to settle what it
// leaves open.
#pragma once

#include "experiments/plans/plan_case.h"
#include "planner/search/problem.h"

namespace pfeife {

/// The schedules that are compared in each way to settle what the case leaves open. Errors:
/// ConfigError if it cannot have these schedules or cuts.
std::vector<std::vector<ScheduleSpec>> searched_schedules(const Request& config,
                                                          const Layers& layers);

/// Fills in everything of `plans` but the baselines and `digest`. Result: the case with nothing
/// left open, its config that of `plans.settled`.
CaseInputs search_plans(const CaseInputs& inputs, const LayersOf& layers_of,
                        const SearchOptions& options, EvaluatedCase& plans);

/// step_norm() of the plans of a request, as a search must know it beforehand. A single device has
/// nothing to exchange.
StepNorm step_norm(const Request& config, const Layers& layers);

/// The problem where that may be recomputed, the last microbatch too unless `except_last`.
Problem recomputing(Problem problem, Recompute recompute, bool except_last);

/// The same with the memory rule of the reference system: it takes 85 % of a device.
Problem reference_problem(Problem problem);

/// What was searched in a case with nothing left open. Borrows from `settled`.
Problem settled_problem(const CaseInputs& settled, Recompute recompute);

}  // namespace pfeife
