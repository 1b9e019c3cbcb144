#include "planner/search/joint/shared_head.h"

#include <algorithm>
#include <functional>

#include "planner/cost/stages/word_shares.h"
#include "planner/schedules/families.h"
#include "planner/search/joint/exact_plans.h"
#include "planner/search/joint/joint_outcome.h"
#include "planner/search/pool/pool.h"

namespace pfeife {
bool has_shared_head(const Problem& problem) {
  return std::ranges::any_of(problem.schedules, shares_head);
}

Answer search_shared_head(const Problem& problem, const SearchOptions& options,
                          const SearchFunction& search) {
  Problem last = problem;
  std::erase_if(last.schedules, shares_head);
  const Layers layers = divided_among(problem.layers, problem.device_of_rank.size());
  Problem shared = with_layers(problem, layers);
  std::erase_if(shared.schedules, std::not_fn(shares_head));
  SearchOptions settled = options;
  settled.certificate = false;

  Answer of_last;
  if (!last.schedules.empty()) of_last = search(last, settled);
  ExactPlans plans(shared, options.effort());
  std::vector<Partition> cuts;
  if (problem.cuts)
    cuts.push_back(*problem.cuts);
  else
    cuts = cuts_of_work(shared, shared.schedules, options, search);
  for (const Priced& plan : of_last.all) cuts.push_back(plan.partition);
  for (const ScheduleSpec& spec : shared.schedules) {
    plans.plan(spec, cuts);
    if (!plans.found.empty()) cuts.push_back(plans.found.back().partition);
  }

  const Claim claim = of_last.bound ? joined(of_last, work_claim(shared)) : work_claim(problem);
  Pool pool(std::move(of_last), problem.memory_limit);
  pool.set_recompute(problem.recompute);
  pool.count(plans.candidates);
  pool.add(std::move(plans.found));
  pool.keep(options.keep);
  pool.reject(std::move(plans.rejected));
  pool.add(plans.closest);
  pool.prove_infeasible(false);
  pool.claim(pool.answer().plans.empty() ? Claim{} : claim);
  return std::move(pool).take();
}

}  // namespace pfeife
