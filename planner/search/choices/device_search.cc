#include "planner/search/choices/device_search.h"

#include <algorithm>

#include "planner/search/bound/work_bound.h"
#include "planner/search/choices/device_orders.h"
#include "planner/search/pool/pool.h"

namespace pfeife {
namespace {

constexpr std::size_t kKept = 12;  ///< orders of the devices that are searched
constexpr Finals kFinals{.short_ones = 4, .full = 1};
constexpr std::size_t kNamingEffort = 30;  ///< of the search that names schedules to judge them by
constexpr std::size_t kPlans = 3;          ///< schedules to judge them by
constexpr double kNamed = 0.3;             ///< of the progress of that search and of judging

/// Schedules to judge orders by: the best, and the best of each number of stages a rank if
/// transfers hinder one another. Every rank has the largest limit: where the given order fits
/// nothing, others may.
std::vector<Priced> plans_to_judge_by(const Problem& problem, SearchOptions options,
                                      const Searcher& searcher) {
  Problem roomy = problem;
  std::ranges::fill(roomy.memory_limit, std::ranges::max(problem.memory_limit));
  options.keep = kPlans, options.iterations = kNamingEffort, options.certificate = false;
  Answer answer = searcher(roomy, options);
  if (options.semantics == Semantics{}) return std::move(answer.plans);
  std::vector<Priced> plans;
  for (Priced& plan : answer.all)
    if (std::ranges::none_of(plans, [&](const Priced& other) {
          return other.spec.stages_per_rank == plan.spec.stages_per_rank;
        }))
      plans.push_back(std::move(plan));
  return plans;
}

}  // namespace

double most_device_work(std::size_t problems, const SearchOptions& options) {
  return most_work(problems * kKept, options, kFinals) +
         static_cast<double>(problems) * search_work(kNamingEffort);
}

BestDevices search_devices(const std::vector<Problem>& problems, const SearchOptions& options,
                           const Searcher& searcher) {
  BestDevices result;
  Nanoseconds not_listed = kNothingFits;  // bound of the orders that are not among result.problems
  // The share of the progress that a search has which names schedules.
  const double each = search_work(kNamingEffort) / most_device_work(problems.size(), options);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const double begin = static_cast<double>(i) * each;
    const SearchOptions naming =
        part_of(options, begin * (1 - kNamed), begin * (1 - kNamed) + kNamed);
    const std::vector<Priced> plans = plans_to_judge_by(problems[i], naming, searcher);
    const PromisingOrders promising = promising_orders(
        problems[i], plans, kKept, part_of(options, begin + kNamed * each, begin + each));
    for (const std::vector<DeviceId>& order : promising.orders) {
      result.problems.push_back(with_devices(problems[i], order));
      result.origin.push_back(i);
    }
    if (!promising.all)
      not_listed = std::min(not_listed,
                            Nanoseconds{static_cast<std::int64_t>(any_devices_bound(
                                problems[i].offload ? without_limits(problems[i]) : problems[i]))});
  }
  result.found = search_alternatives(result.problems, options, searcher, kFinals);
  Pool pool(std::move(result.found.outcome), problems.front().memory_limit);
  if (pool.answer().bound) pool.rebound(std::min(pool.answer().bound->time, not_listed));
  if (not_listed != kNothingFits) pool.prove_infeasible(false);
  result.found.outcome = std::move(pool).take();
  return result;
}

}  // namespace pfeife
