#include "planner/search/steps/step.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "planner/ir/basics/error.h"
#include "planner/ir/result/need.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

std::optional<Nanoseconds> best_estimate(const Pool& pool) {
  const std::vector<Priced>& plans = pool.answer().plans;
  return plans.empty() ? std::nullopt : std::optional(plans.front().estimate);
}

/// Whether the bound of the answer surely holds for the plan: a listed schedule in its own
/// placement, with the memory that the bound allows. Bounds of narrower classes of cuts say nothing
/// here.
bool is_listed(const Priced& plan, const Answer& answer, const Problem& problem) {
  const Bound& bound = *answer.bound;
  const bool offload = std::ranges::any_of(answer.covered, &Covered::offload);
  return bound.least_share == 0 && !bound.linked && !plan.order &&
         std::ranges::find(bound.schedules, plan.spec) != bound.schedules.end() &&
         plan.placement == placement_for(plan.spec, problem.device_of_rank) &&
         (offload || !plan.activations.offloads()) && fits(plan.peak_memory, bound.memory_limit);
}

/// No claim lies above a plan that it holds for.
void check_claim(const Problem& problem, const Pool& pool, std::string_view step) {
  const Answer& answer = pool.answer();
  if (!answer.bound) return;
  for (const Priced& plan : answer.all)
    PFEIFE_CHECK(!is_listed(plan, answer, problem) || answer.bound->time <= plan.estimate,
                 "behind the step \"", step, "\" the bound is above ", name_of(plan));
}

}  // namespace

void take_step(std::string_view name, const Problem& problem, const SearchOptions& options,
               Pool& pool, const std::function<void()>& add) {
  const std::optional<Nanoseconds> before = best_estimate(pool);
  const auto started = std::chrono::steady_clock::now();
  add();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const std::optional<Nanoseconds> best = best_estimate(pool);
  PFEIFE_CHECK(!before || (best && *best <= *before), "the step \"", name, "\" lost the best plan");
  check_claim(problem, pool, name);
  if (!options.after_step) return;
  const std::optional<Bound>& bound = pool.answer().bound;
  options.after_step({name, seconds, best, bound ? std::optional(bound->time) : std::nullopt});
}

}  // namespace pfeife
