#include "planner/search/steps/sliced_schedules.h"

#include <algorithm>

#include "planner/schedules/families.h"
#include "planner/search/joint/joint_outcome.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/pool/pool.h"
#include "planner/search/steps/exact_plans.h"

namespace pfeife {
namespace {

bool is_sliced(const ScheduleSpec& spec) { return spec.slices > 1; }

}  // namespace

bool has_slices(const Problem& problem) {
  return std::ranges::any_of(problem.schedules, is_sliced);
}

void add_sliced_plans(const Problem& problem, const SearchOptions& options,
                      const SearchFunction& search, Pool& pool) {
  std::vector<ScheduleSpec> sliced;
  std::ranges::copy_if(problem.schedules, std::back_inserter(sliced), is_sliced);
  ExactPlans plans(problem, options.effort());
  std::vector<Partition> cuts;
  if (problem.cuts)
    cuts.push_back(*problem.cuts);
  else
    cuts = cuts_of_work(problem, sliced, options, search);
  for (const Priced& plan : pool.answer().all) cuts.push_back(plan.partition);
  // Orders that are built go last: on the cuts of those that are written down, too.
  std::ranges::stable_partition(sliced, std::not_fn(is_built));
  for (const ScheduleSpec& spec : sliced) {
    plans.plan(spec, cuts);
    cuts.push_back(plans.found.empty() ? cuts.front() : plans.found.back().partition);
  }
  pool.count(plans.candidates);
  pool.add(std::move(plans.found));
  pool.keep(options.keep);
  pool.reject(std::move(plans.rejected));
  pool.add(plans.closest);
  pool.prove_infeasible(false);
  pool.claim(pool.answer().plans.empty() ? Claim{} : work_claim(problem));
}

}  // namespace pfeife
