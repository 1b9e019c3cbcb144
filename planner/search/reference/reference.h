// Reference mode: the planner of Pfeife (ICML 2025) as its paper and program describe it, so that a
// study can compare like with like. Nothing else in the project depends on it.
//
// Its own: the schedules and their order, where it stops, initial cuts, beam search. Ours: costs,
// step time, memory rule (as the problem says). Left out of its flaws: schedules that deadlock are
// not priced, and an infeasible start does not win over a feasible plan.
#pragma once

#include "planner/search/price/cut_model.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Its schedules, in its order: V ascending, loop batch (D, then the divisors of N in (D, N]; N for
/// V = 1), prefetch 0 to D - 1. None for V > 1 if N < D.
std::vector<ScheduleSpec> reference_set(std::size_t ranks, std::size_t microbatches,
                                        const std::vector<std::size_t>& stages_per_rank);

/// Its first cuts into `stages` stages: buckets of equal parameters + kept activations, then up to
/// ten shifts to the left until `feasible`. nullopt if the buckets do not suffice. `weight` and
/// `kept` are prefix sums over n segments (n + 1 values).
std::optional<Cuts> reference_cuts(const std::vector<double>& weight,
                                   const std::vector<double>& kept, std::size_t stages,
                                   const std::function<bool(const Cuts&)>& feasible);

/// problem.schedules = reference_set(...). At most one plan; no bound. Infeasible is never proven.
Answer reference_search(const Problem& problem);

}  // namespace pfeife
