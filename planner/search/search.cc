// The joint search over schedules and cuts.
//
//  1. Every schedule starts from min-max cuts; the best few of them are polished: an upper bound.
//  2. Every schedule's lower bound; those above the upper bound are out.
//  3. Local search and annealing on what is left, then bounds again.
//  4. Orders built for the costs (zb_greedy), starting from the best cuts.
//  5. Branch and bound in rounds, always on the schedules with the lowest bounds, until nothing is
//     left below the best plan or the budget is spent.
//
// Schedules are independent within a step, the parts of a tree within a round, and steps and rounds
// exchange what they found in a fixed order, so the outcome does not depend on the number of
// threads. Budgets are counts.
#include "planner/search/search.h"

#include <algorithm>
#include <limits>

#include "planner/search/given_cuts.h"
#include "planner/search/joint_outcome.h"
#include "planner/search/joint_search.h"

namespace pfeife {

constexpr std::size_t kDefaultEffort = 500;

JointSearch::JointSearch(const Problem& problem, const std::vector<ScheduleSpec>& built,
                         const SearchOptions& options)
    : problem_(problem),
      to_build_(built),
      options_(options),
      effort_(options.iterations > 0 ? options.iterations : kDefaultEffort),
      model_(problem.layers, problem.cluster, problem.memory_rule,
             problem.recompute == Recompute::Full) {}

SearchOutcome JointSearch::run() {
  place_start();
  report(0.1);
  polish_first();
  report(0.2);
  bound_all();
  report(0.35);
  anneal_best();
  bound_all();
  report(0.6);
  build_orders();
  report(0.6);
  branch();
  report(1);
  return joint_outcome({problem_, to_build_, options_, model_, contenders_, built_},
                       std::move(history_));
}

void JointSearch::report(double fraction) {
  if (options_.progress) options_.progress(fraction);
  const SearchStep step{evaluated(contenders_, built_), known(best_time()),
                        known(least_bound(contenders_))};
  if (history_.empty() || history_.back() != step) history_.push_back(step);
}

double JointSearch::best_time() const {
  double best = std::numeric_limits<double>::infinity();
  for (const Contender& c : contenders_)
    if (c.candidates) best = std::min(best, c.candidates->best_time());
  for (const BuiltPlan& b : built_)
    if (b.plan) best = std::min(best, static_cast<double>(b.plan->estimate.count()));
  return best;
}

std::vector<std::size_t> JointSearch::by_time() const {
  std::vector<std::size_t> order;
  for (const Contender& c : contenders_)
    if (c.candidates && c.candidates->best()) order.push_back(c.number);
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return contenders_[i].candidates->best_time(); });
  return order;
}

static SearchOutcome search_cuts(const Problem& problem, const SearchOptions& options) {
  Problem known = problem;  // without the schedules whose order is yet to be built
  std::erase_if(known.schedules, is_built);
  std::vector<ScheduleSpec> to_build;
  std::ranges::copy_if(problem.schedules, std::back_inserter(to_build), is_built);
  return JointSearch(known, to_build, options).run();
}

SearchOutcome search(const Problem& problem, const SearchOptions& options) {
  SearchOutcome outcome =
      problem.cuts ? choose_schedule(problem, options) : search_cuts(problem, options);
  outcome.recompute = problem.recompute;
  return outcome;
}

}  // namespace pfeife
