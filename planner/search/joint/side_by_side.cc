#include "planner/search/joint/side_by_side.h"

#include <algorithm>

#include "planner/schedules/families.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/joint/exact_descent.h"
#include "planner/search/price/hidden_collectives.h"
#include "planner/search/price/pareto.h"
#include "planner/search/price/price.h"

namespace pfeife {
namespace {

/// A plan of each schedule that hides collectives: the best of what was found for its compute and
/// of the others' cuts, and what a descent from there finds.
std::vector<Priced> plans_of(const Problem& problem, const Answer& of_compute, const Answer& others,
                             std::size_t most) {
  std::vector<Priced> plans;
  const auto add = [&](Priced plan) {
    if (auto exact = fitting(problem, std::move(plan))) plans.push_back(*std::move(exact));
  };
  for (const auto* found : {&of_compute.all, &of_compute.front})
    for (const Priced& plan : *found) add(plan);
  for (const ScheduleSpec& spec : problem.schedules)
    for (Priced plan : others.all) {
      if (!hides_collectives(problem.layers, spec) || plan.partition.stages() != spec.stages())
        continue;
      plan.spec = spec, plan.order.reset();
      plan.placement = placement_for(spec, problem.device_of_rank);
      add(std::move(plan));
    }
  plans = best_of_each(std::move(plans));
  if (!problem.cuts)
    for (Priced& plan : plans) plan = descended(problem, std::move(plan), most);
  return plans;
}

/// What holds for the schedules of both; nothing if nothing does for one of them.
void join_bounds(const Answer& hiding, Answer& outcome) {
  if (!outcome.bound || !hiding.bound) {
    outcome.bound.reset(), outcome.covered.clear();
    return;
  }
  Bound& bound = *outcome.bound;
  bound.time = std::min(bound.time, hiding.bound->time);
  bound.least_share = std::max(bound.least_share, hiding.bound->least_share);
  bound.linked = bound.linked || hiding.bound->linked;
  bound.schedules.insert(bound.schedules.end(), hiding.bound->schedules.begin(),
                         hiding.bound->schedules.end());
  outcome.covered.insert(outcome.covered.end(), hiding.covered.begin(), hiding.covered.end());
}

void join_infeasible(const Answer& hiding, Answer& outcome) {
  if (!outcome.plans.empty()) {
    outcome.infeasible.reset();
    return;
  }
  const std::optional<Infeasible> lack = outcome.infeasible, hiding_lack = hiding.infeasible;
  if (!lack || (hiding_lack && hiding_lack->lacking() < lack->lacking()))
    outcome.infeasible = hiding_lack;
  if (outcome.infeasible)
    outcome.infeasible->proven = (!lack || lack->proven) && (!hiding_lack || hiding_lack->proven);
}

}  // namespace

Answer search_side_by_side(const Problem& problem, const SearchOptions& options,
                           const SearchFunction& search) {
  const auto hides = [&](const ScheduleSpec& s) { return hides_collectives(problem.layers, s); };
  SearchOptions settled = options;
  settled.certificate = false;
  Problem others = problem;
  std::erase_if(others.schedules, hides);
  const Layers compute = without_collectives(problem.layers);
  Problem hiding = with_layers(problem, compute);
  std::erase_if(hiding.schedules, [&](const ScheduleSpec& s) { return !hides(s); });

  Answer of_compute = search(hiding, settled);
  if (of_compute.bound) {
    Problem listed = problem;
    listed.schedules = hiding.schedules;
    of_compute.bound->time = std::max(of_compute.bound->time,
                                      Nanoseconds{static_cast<std::int64_t>(work_bound(listed))});
  }
  Answer outcome;
  if (others.schedules.empty())
    outcome.bound = of_compute.bound, outcome.infeasible = of_compute.infeasible;
  else
    outcome = search(others, settled);
  std::vector<Priced> plans = plans_of(problem, of_compute, outcome, options.effort());
  std::vector<Priced> front = plans;
  front.insert(front.end(), outcome.front.begin(), outcome.front.end());
  outcome.front = pareto_front(std::move(front), problem.memory_limit);
  plans.insert(plans.end(), outcome.all.begin(), outcome.all.end());
  outcome.all = best_of_each(std::move(plans));
  outcome.plans = outcome.all;
  if (outcome.plans.size() > options.keep) outcome.plans.resize(options.keep);
  outcome.rejected.insert(outcome.rejected.end(), of_compute.rejected.begin(),
                          of_compute.rejected.end());
  std::erase_if(outcome.rejected, [&](const Rejected& rejected) {
    return std::ranges::find(outcome.plans, rejected.spec, &Priced::spec) != outcome.plans.end();
  });
  for (Covered& covered : of_compute.covered) covered.hides_collectives = true;
  if (others.schedules.empty())
    outcome.covered = of_compute.covered;
  else
    join_bounds(of_compute, outcome);
  join_infeasible(of_compute, outcome);
  if (outcome.plans.empty()) outcome.bound.reset(), outcome.covered.clear();
  outcome.candidates += of_compute.candidates;
  outcome.effort += of_compute.effort;
  outcome.orders_left_out = outcome.orders_left_out || of_compute.orders_left_out;
  return outcome;
}

}  // namespace pfeife
