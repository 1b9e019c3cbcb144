#include "experiments/plans/handed_plans.h"

#include <algorithm>

#include "planner/io/plan/plan_file.h"
#include "planner/schedules/families.h"
#include "planner/search/price/price.h"

namespace pfeife {
namespace {

/// The choices of a plan that was written. Its schedule is lowered.
Choice choice_of(const Plan& plan) {
  Choice choice = plan;
  choice.order.reset();
  if (!family(plan.spec.family).built_for_costs) return choice;
  choice.order = plan.schedule;
  for (std::vector<Cell>& row : choice.order->rows)
    std::erase_if(row, [](const Cell& cell) {
      const auto* const action = std::get_if<Action>(&cell);
      return action != nullptr && !is_compute(action->op);
    });
  return choice;
}

}  // namespace

std::vector<std::pair<std::string, Priced>> handed_plans(const CaseInputs& inputs,
                                                         const Problem& problem,
                                                         const Answer& answer) {
  const auto is_listed = [&](const ScheduleSpec& spec) {
    return std::ranges::find(problem.schedules, spec) != problem.schedules.end() ||
           (inputs.config->plan.search_placement && !spec.rank_of_stage.empty() &&
            spec.microbatches == problem.schedules.front().microbatches);
  };
  std::vector<std::pair<std::string, Priced>> found;
  for (const auto& [name, file] : inputs.handed) {
    if (!std::filesystem::exists(file)) continue;  // nothing fits there
    const Plan plan = read_plan(file);
    if (plan.model_digest != problem.layers->digest || plan.linear_order != problem.layers->order ||
        plan.placement.device_of_rank != problem.device_of_rank ||
        !illegal_because(problem.layers, plan.partition).empty() || !is_listed(plan.spec))
      continue;
    auto priced = fitting(problem, choice_of(plan));
    if (priced && std::ranges::find(answer.all, *priced) == answer.all.end())
      found.emplace_back(name, *std::move(priced));
  }
  return found;
}

}  // namespace pfeife
