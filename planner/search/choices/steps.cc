#include "planner/search/choices/steps.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "planner/ir/basics/error.h"
#include "planner/ir/result/need.h"
#include "planner/schedules/families.h"
#include "planner/search/choices/leaner_orders.h"
#include "planner/search/choices/offloading.h"
#include "planner/search/choices/placements.h"

namespace pfeife {
namespace {

void add_less_memory(const PlanningInputs& inputs, Pool& pool) {
  for (const double slower : {inputs.less_memory->as_fast, kNearlyAsFast})
    pool.add_near(leaner_orders(inputs.problem, pool.answer().all, slower, inputs.options.threads));
}

struct Step {
  std::string_view name;
  bool (*wanted)(const PlanningInputs&, const Pool&);
  void (*take)(const PlanningInputs&, Pool&);
};

constexpr Step kSteps[] = {
    {"plans of other cases",
     [](const PlanningInputs& inputs, const Pool&) { return !inputs.handed.empty(); },
     [](const PlanningInputs& inputs, Pool& pool) { pool.add(inputs.handed); }},
    {"offload", [](const PlanningInputs& inputs, const Pool&) { return inputs.offload; },
     [](const PlanningInputs& inputs, Pool& pool) {
       add_offloading_plans(inputs.problem, inputs.options, inputs.search, pool);
     }},
    {"placements",
     [](const PlanningInputs& inputs, const Pool& pool) {
       return inputs.search_placement && !pool.answer().plans.empty();
     },
     [](const PlanningInputs& inputs, Pool& pool) {
       pool.add(placed_plans(inputs.problem, pool.answer().plans, inputs.options, inputs.search));
     }},
    {"less memory",
     [](const PlanningInputs& inputs, const Pool& pool) {
       return inputs.less_memory && !pool.answer().plans.empty();
     },
     add_less_memory},
};

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
         (offload || !plan.recomputed.offloads()) && fits(plan.peak_memory, bound.memory_limit);
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

void take_steps(const PlanningInputs& inputs, Pool& pool) {
  for (const Step& step : kSteps) {
    if (!step.wanted(inputs, pool)) continue;
    const std::optional<Nanoseconds> before = best_estimate(pool);
    const auto started = std::chrono::steady_clock::now();
    step.take(inputs, pool);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    const std::optional<Nanoseconds> best = best_estimate(pool);
    PFEIFE_CHECK(!before || (best && *best <= *before), "the step \"", step.name,
                 "\" lost the best plan");
    check_claim(inputs.problem, pool, step.name);
    if (!inputs.options.after_step) continue;
    const std::optional<Bound>& bound = pool.answer().bound;
    inputs.options.after_step(
        {step.name, seconds, best, bound ? std::optional(bound->time) : std::nullopt});
  }
}

}  // namespace pfeife
