#include "planner/search/steps/shared_head.h"

#include <algorithm>
#include <functional>

#include "planner/cost/stages/word_shares.h"
#include "planner/schedules/families.h"
#include "planner/search/joint/joint_outcome.h"
#include "planner/search/pool/pool.h"
#include "planner/search/steps/exact_plans.h"

namespace pfeife {
bool has_shared_head(const Problem& problem) {
  return std::ranges::any_of(problem.schedules, shares_head);
}

void add_shared_head_plans(const Problem& problem, const SearchOptions& options,
                           const SearchFunction& search, Pool& pool) {
  const Layers layers = divided_among(problem.layers, problem.device_of_rank.size());
  Problem shared = with_layers(problem, layers);
  std::erase_if(shared.schedules, std::not_fn(shares_head));

  ExactPlans plans(shared, options.effort());
  std::vector<Partition> cuts;
  if (problem.cuts)
    cuts.push_back(*problem.cuts);
  else
    cuts = cuts_of_work(shared, shared.schedules, options, search);
  for (const Priced& plan : pool.answer().all) cuts.push_back(plan.partition);
  for (const ScheduleSpec& spec : shared.schedules) {
    plans.plan(spec, cuts);
    if (!plans.found.empty()) cuts.push_back(plans.found.back().partition);
  }

  Claim claim =
      pool.answer().bound ? joined(pool.answer(), work_claim(shared)) : work_claim(problem);
  pool.count(plans.candidates);
  pool.add(std::move(plans.found));
  pool.keep(options.keep);
  pool.reject(std::move(plans.rejected));
  pool.add(plans.closest);
  pool.prove_infeasible(false);
  pool.claim(pool.answer().plans.empty() ? Claim{} : std::move(claim));
}

}  // namespace pfeife
