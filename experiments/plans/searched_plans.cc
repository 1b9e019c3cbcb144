#include "experiments/plans/searched_plans.h"

#include <algorithm>

#include "experiments/plans/case_problem.h"
#include "experiments/plans/cut_places.h"
#include "experiments/plans/handed_plans.h"
#include "experiments/plans/head_choice.h"
#include "planner/ir/request/framework.h"
#include "planner/search/choices/advice.h"
#include "planner/search/choices/leaner_orders.h"
#include "planner/search/search.h"
#include "planner/search/steps/equal_blocks.h"
#include "planner/search/steps/step.h"

namespace pfeife {
namespace {

/// Why nothing was found although no memory is short.
std::string uncuttable(const Problem& problem, bool reference) {
  const std::size_t most = most_stages(problem.layers);
  const bool too_few = std::ranges::all_of(
      problem.schedules, [&](const ScheduleSpec& spec) { return spec.stages() > most; });
  if (!too_few)
    return std::string("no plan found") +
           (reference ? ": the rule for first cuts of plan.search: reference makes fewer stages of "
                        "these layers than are needed"
                      : "");
  return "no plan found: the model can be cut into " + std::to_string(most) +
         (most == 1 ? " stage" : " stages") + " at most, and every schedule listed has more";
}

/// The best plans of a search, and the least full ones of those that count as fast, or nearly; the
/// fastest first.
std::vector<Priced> plans_to_compare(const Answer& answer, const PlanRule& rule) {
  constexpr std::ptrdiff_t kLeastFull = 3;
  std::vector<Priced> plans = answer.plans;
  if (plans.empty()) return plans;
  const auto fastest = static_cast<double>(plans.front().estimate.count());
  const auto add = [&](double share, std::ptrdiff_t count) {
    const auto end = std::ranges::find_if(answer.front, [&](const Priced& plan) {
      return static_cast<double>(plan.estimate.count()) > (1 + share) * fastest;
    });
    const auto begin = end - std::min(end - answer.front.begin(), count);
    for (const Priced& plan : std::ranges::subrange(begin, end))
      if (std::ranges::find(plans, plan) == plans.end()) plans.push_back(plan);
  };
  add(rule.as_fast, kLeastFull);
  add(kNearlyAsFast, 1);
  std::ranges::stable_sort(plans, {}, &Priced::estimate);
  return plans;
}

/// The plans of other cases.
void add_handed_plans(const CaseInputs& inputs, const Problem& problem,
                      const SearchOptions& options, EvaluatedCase& plans) {
  plans.handed = handed_plans(inputs, problem, plans.answer());
  if (plans.handed.empty()) return;
  std::vector<Priced> priced;
  for (const auto& [name, plan] : plans.handed) priced.push_back(plan);
  take_step("plans of other cases", problem, options, plans.pool,
            [&] { plans.pool.add(std::move(priced)); });
}

/// Orders that need less memory, within the slowdowns that the rule allows.
void add_less_memory(const Problem& problem, const SearchOptions& options, const PlanRule& rule,
                     Pool& pool) {
  if (pool.answer().plans.empty()) return;
  take_step("less memory", problem, options, pool, [&] {
    for (const double slower : {rule.as_fast, kNearlyAsFast})
      pool.add_near(leaner_orders(problem, pool.answer().all, slower, options.threads));
  });
}

}  // namespace

CaseInputs search_plans(const CaseInputs& inputs, const LayersOf& layers_of,
                        const SearchOptions& options, EvaluatedCase& plans) {
  const Request& config = *inputs.config;
  const Cluster& cluster = *inputs.cluster;
  SettledSearch found = search_case(inputs, layers_of, options);
  plans.pool = std::move(found.pool);
  plans.settled = std::make_shared<const Request>(found.best.config);
  const CaseInputs settled{plans.settled.get(), found.best.layers, &cluster};
  const Problem problem = settled_problem(settled, plans.answer().recompute);
  const bool compared = options.keep > 1 && !config.plan.reference;
  add_handed_plans(inputs, problem, options, plans);
  if (compared) add_less_memory(problem, options, config.plan.rule(), plans.pool);
  if (const Framework* made_for = framework(config.plan.framework);
      made_for != nullptr && made_for->equal_blocks)
    make_blocks_equal(problem, plans.pool);
  if (plans.answer().alternatives.empty())
    plans.pool.set_alternatives(head_alternatives(config, *settled.layers, plans.answer()));
  const Origin origin = config.plan.reference ? Origin::Reference : Origin::Search;
  const std::vector<Priced> best =
      compared ? plans_to_compare(plans.answer(), config.plan.rule()) : plans.answer().plans;
  for (const Priced& planned : best)
    plans.planned.push_back(estimated_plan(settled, origin, kPlanned, planned));
  if (!plans.planned.empty()) return settled;
  plans.planned.push_back(
      no_plan(settled, origin, kPlanned,
              plans.answer().infeasible
                  ? shortage(plans.answer(), problem.schedules.size(), config.plan.offload)
                  : uncuttable(problem, config.plan.reference)));
  if (!config.plan.reference)
    plans.pool.set_tried(what_would_help(*plans.settled, problem, layers_of, options.threads));
  return settled;
}

}  // namespace pfeife
