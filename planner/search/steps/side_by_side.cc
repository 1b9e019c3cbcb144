#include "planner/search/steps/side_by_side.h"

#include <algorithm>

#include "planner/schedules/families.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/joint/exact_descent.h"
#include "planner/search/pool/pool.h"
#include "planner/search/price/hidden_collectives.h"
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

}  // namespace

void add_side_by_side(const Problem& problem, const SearchOptions& options,
                      const SearchFunction& search, Pool& pool) {
  const Layers compute = without_collectives(problem.layers);
  Problem hiding = with_layers(problem, compute);
  std::erase_if(hiding.schedules,
                [&](const ScheduleSpec& spec) { return !hides_collectives(problem.layers, spec); });
  const bool alone = std::ranges::all_of(problem.schedules, [&](const ScheduleSpec& spec) {
    return spec.slices > 1 || shares_head(spec) || hides_collectives(problem.layers, spec);
  });

  Answer of_compute = search(hiding, options);
  if (of_compute.bound) {
    Problem listed = problem;
    listed.schedules = hiding.schedules;
    of_compute.bound->time = std::max(of_compute.bound->time,
                                      Nanoseconds{static_cast<std::int64_t>(work_bound(listed))});
  }
  for (Covered& covered : of_compute.covered) covered.hides_collectives = true;
  const Answer& beside = pool.answer();
  std::vector<Priced> plans = plans_of(problem, of_compute, beside, options.effort());
  const bool may_fit = beside.infeasible && !beside.infeasible->proven;
  Claim claim = alone ? static_cast<Claim>(of_compute) : joined(beside, of_compute);
  pool.count(of_compute.candidates, of_compute.effort);
  pool.add(std::move(plans));
  pool.reject(std::move(of_compute.rejected));
  pool.keep(options.keep);
  pool.add(of_compute.infeasible);
  pool.leave_out_orders(pool.answer().orders_left_out || of_compute.orders_left_out);
  if (of_compute.infeasible && pool.answer().infeasible)
    pool.prove_infeasible(of_compute.infeasible->proven && !may_fit);
  pool.claim(pool.answer().plans.empty() ? Claim{} : std::move(claim));
}

}  // namespace pfeife
