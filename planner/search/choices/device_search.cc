#include "planner/search/choices/device_search.h"

#include <algorithm>

#include "planner/search/bound/work_bound.h"
#include "planner/search/choices/device_orders.h"
#include "planner/search/choices/relaxed_devices.h"
#include "planner/search/choices/work_certificate.h"

namespace pfeife {
namespace {

constexpr std::size_t kKept = 6;           ///< orders of the devices that are searched
constexpr std::size_t kLittleEffort = 30;  ///< of the search that names schedules to judge them by
constexpr std::size_t kPlans = 3;          ///< schedules to judge them by

using Proof = std::shared_ptr<const Certificate>;

/// What holds for every order of the devices of a problem.
struct OfAnyOrder {
  Nanoseconds bound{0};
  Proof certificate;
};

/// `built`: also of the orders of actions that are built for costs.
OfAnyOrder any_order(const Problem& problem, const SearchOptions& options, const Searcher& searcher,
                     bool built) {
  const RelaxedDevices relaxed(problem);
  const Problem easier = relaxed.problem();
  const SearchOutcome outcome = searcher(easier, options);
  OfAnyOrder found{Nanoseconds{static_cast<std::int64_t>(work_bound(easier))}, nullptr};
  const auto add = [&](Nanoseconds bound, const Proof& proof, bool of_easier = true) {
    found.bound = std::max(found.bound, bound);
    if (proof && (!found.certificate || proof->bound > found.certificate->bound))
      found.certificate =
          std::make_shared<Certificate>(relaxed.beside_each_other(*proof, of_easier));
  };
  if (outcome.infeasible && outcome.infeasible->proven)
    add(kNothingFits, outcome.certificate);
  else if (outcome.bound && (!built || outcome.plans[0].order))
    add(outcome.bound->time, outcome.certificate);
  if (const auto whole = whole_certificate(problem)) add(Nanoseconds{whole->bound}, whole, false);
  if (options.certificate && (!found.certificate || found.certificate->bound < found.bound.count()))
    add(Nanoseconds{0}, work_certificate(easier));
  return found;
}

/// What may be recomputed in all orders of a problem's devices: by the plans that one proof covers
/// (`jointly`) as much as in any of them, by those that every order's own proof covers the least.
Recompute allowed(const BestDevices& devices, std::size_t problem, bool jointly) {
  std::optional<Recompute> found;
  for (std::size_t k = 0; k < devices.problems.size(); ++k) {
    const AlternativeOutcome& one = devices.found.all[k];
    if (devices.origin[k] != problem || (jointly && !one.searched)) continue;
    if (!found || (jointly ? one.recompute > *found : one.recompute < *found))
      found = one.recompute;
  }
  return found.value_or(Recompute::None);
}

/// The certificates of a problem's orders get the figures that the one of any order needs, so that
/// all are of the same devices.
void add_figures(const Problem& problem, std::size_t number, BestDevices& devices) {
  const RelaxedDevices relaxed(problem);
  const auto add = [&](Proof& proof) {
    if (proof) proof = std::make_shared<Certificate>(relaxed.beside_each_other(*proof, false));
  };
  for (std::size_t k = 0; k < devices.problems.size(); ++k)
    if (devices.origin[k] == number) add(devices.found.all[k].certificate);
  if (devices.origin[devices.found.best] == number) add(devices.found.outcome.certificate);
}

}  // namespace

SearchCount most_device_searches(std::size_t problems) {
  SearchCount count = most_searches(problems * kKept);
  count.brief += problems, count.full += problems;  // on devices that are all alike
  return count;
}

BestDevices search_devices(const std::vector<Problem>& problems, const SearchOptions& options,
                           const Searcher& searcher) {
  SearchOptions brief = options;
  brief.keep = kPlans, brief.iterations = kLittleEffort, brief.certificate = false;
  BestDevices result;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    // Schedules to judge by come from devices that are all alike: the given order may fit nothing.
    const RelaxedDevices alike(problems[i]);
    const std::vector<PlannedSchedule> plans = searcher(alike.problem(), brief).plans;
    const PromisingOrders promising = promising_orders(problems[i], plans, kKept, options.threads);
    result.given.push_back({.all_listed = promising.all});
    for (const std::vector<DeviceId>& order : promising.orders) {
      result.problems.push_back(with_devices(problems[i], order));
      result.origin.push_back(i);
    }
  }
  result.found = search_alternatives(result.problems, options, searcher);
  SearchOutcome& outcome = result.found.outcome;
  const bool built = !outcome.plans.empty() && outcome.plans[0].order;
  brief.iterations = options.iterations, brief.certificate = options.certificate;
  // Where not all orders are listed, the bound is that of the easier problem.
  Nanoseconds bound = kNothingFits;
  for (std::size_t k = 0; k < result.problems.size(); ++k)
    if (result.given[result.origin[k]].all_listed)
      bound = std::min(bound, built ? result.found.all[k].any_order : result.found.all[k].listed);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    GivenDevices& given = result.given[i];
    given.recompute = allowed(result, i, !given.all_listed);
    if (given.all_listed) continue;
    add_figures(problems[i], i, result);
    Problem recomputing = problems[i];
    recomputing.recompute = given.recompute;
    const OfAnyOrder any = any_order(recomputing, brief, searcher, built);
    const bool lower = any.certificate && any.bound != kNothingFits;  // what others can check
    bound = std::min(bound, lower ? Nanoseconds{any.certificate->bound} : any.bound);
    given.certificate = any.certificate;
  }
  if (outcome.bound) {
    outcome.bound->time = std::min(bound, outcome.plans[0].estimate);
    outcome.bound->covers += "; any order of the devices";
  }
  if (outcome.infeasible) outcome.infeasible->proven = bound == kNothingFits;
  return result;
}

}  // namespace pfeife
