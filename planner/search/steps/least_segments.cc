#include "planner/search/steps/least_segments.h"

#include <algorithm>

#include "planner/cost/allocator/played_ranks.h"
#include "planner/schedules/families.h"
#include "planner/search/cuts/min_max.h"
#include "planner/search/pool/pool.h"
#include "planner/search/price/lack.h"

namespace pfeife {

std::optional<Answer> below_least_segments(const Problem& problem) {
  const auto sliced = [](const ScheduleSpec& spec) { return spec.slices > 1; };
  if (!problem.allocator || problem.memory_rule != MemoryRule::Lifetimes ||
      std::ranges::any_of(problem.schedules, sliced))
    return std::nullopt;
  const LeastReserved least = least_reserved(problem.layers, *problem.allocator);
  const auto smallest = std::ranges::min_element(problem.memory_limit);
  const auto largest = std::ranges::max_element(problem.memory_limit);
  const bool each = *smallest < least.of_each;
  if (!each && *largest >= least.of_fullest) return std::nullopt;
  const auto at = each ? smallest : largest;
  Pool pool(problem.memory_limit);
  pool.set_recompute(problem.recompute);
  for (const ScheduleSpec& spec : problem.schedules) {
    const Placement placement = placement_for(spec, problem.device_of_rank);
    std::optional<Partition> cuts = problem.cuts;
    if (!cuts) cuts = equal_time_cuts(problem.layers, placement, problem.cluster);
    if (!cuts || cuts->stages() != spec.stages()) return std::nullopt;  // the search says why
    const Infeasible lack{RankId{static_cast<std::size_t>(at - problem.memory_limit.begin())},
                          each ? least.of_each : least.of_fullest,
                          *at,
                          spec,
                          *std::move(cuts),
                          true};
    pool.reject({spec, lacks(lack)});
    pool.add(lack);
  }
  return std::move(pool).take();
}

}  // namespace pfeife
