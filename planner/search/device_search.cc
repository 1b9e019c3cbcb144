#include "planner/search/device_search.h"

#include <algorithm>

#include "planner/search/device_orders.h"
#include "planner/search/work_bound.h"

namespace pfeife {
namespace {

constexpr std::size_t kKept = 6;           ///< orders of the devices that are searched
constexpr std::size_t kLittleEffort = 30;  ///< of the search that names schedules to judge them by
constexpr std::size_t kPlans = 3;          ///< schedules to judge them by

/// A bound for every order of the devices of a problem. `built`: also of the orders of actions that
/// are built for costs.
Nanoseconds any_order(const Problem& problem, const SearchOptions& options,
                      const Searcher& searcher, bool built) {
  const RelaxedDevices relaxed(problem);
  const Problem easier = relaxed.problem();
  const SearchOutcome outcome = searcher(easier, options);
  if (outcome.infeasible && outcome.infeasible->proven) return kNothingFits;
  const bool holds = outcome.bound && (!built || outcome.plans[0].order);
  const double work = std::max(work_bound(easier),
                               shared_work_bound(problem, problem.schedules.front().microbatches));
  return std::max(holds ? outcome.bound->time : Nanoseconds{0},
                  Nanoseconds{static_cast<std::int64_t>(work)});
}

}  // namespace

BestDevices search_devices(const std::vector<Problem>& problems, const SearchOptions& options,
                           const Searcher& searcher) {
  SearchOptions brief = options;
  brief.keep = kPlans, brief.iterations = kLittleEffort, brief.certificate = false;
  BestDevices result;
  std::vector<std::size_t> incomplete;  // problems of which not every order is listed
  for (std::size_t i = 0; i < problems.size(); ++i) {
    // Schedules to judge by come from devices that are all alike: the given order may fit nothing.
    const RelaxedDevices alike(problems[i]);
    const std::vector<PlannedSchedule> plans = searcher(alike.problem(), brief).plans;
    const PromisingOrders promising = promising_orders(problems[i], plans, kKept, options.threads);
    if (!promising.all) incomplete.push_back(i);
    for (const std::vector<DeviceId>& order : promising.orders) {
      result.problems.push_back(with_devices(problems[i], order));
      result.origin.push_back(i);
    }
  }
  result.found = search_alternatives(result.problems, options, searcher);
  SearchOutcome& outcome = result.found.outcome;
  const bool built = !outcome.plans.empty() && outcome.plans[0].order;
  brief.iterations = options.iterations;
  // Where not all orders are listed, the bound is that of the easier problem.
  Nanoseconds bound = kNothingFits;
  for (std::size_t k = 0; k < result.problems.size(); ++k)
    if (std::ranges::find(incomplete, result.origin[k]) == incomplete.end())
      bound = std::min(bound, built ? result.found.all[k].any_order : result.found.all[k].bound);
  for (const std::size_t i : incomplete)
    bound = std::min(bound, any_order(problems[i], brief, searcher, built));
  if (outcome.bound) {
    outcome.bound->time = std::min(bound, outcome.plans[0].estimate);
    outcome.bound->covers += "; any order of the devices";
  }
  if (outcome.infeasible) outcome.infeasible->proven = bound == kNothingFits;
  return result;
}

}  // namespace pfeife
