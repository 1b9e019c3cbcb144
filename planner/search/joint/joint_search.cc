// The joint search over schedules and cuts.
//
//  1. Every schedule starts from min-max cuts; the best few of them are polished: an upper bound.
//  2. Every schedule's lower bound; those above the upper bound are out.
//  3. In spans of effort, each a third of all before it:
//     a. local search and annealing on what is left, then bounds again;
//     b. orders built for the costs (zb_greedy), starting from the best cuts;
//     c. branch and bound in rounds, on the schedules with the lowest bounds, and on the one that
//        the best plan is of.
//
// Nothing is searched for a schedule before it has been bounded: most are out by that.
//
// It ends when nothing is left below the best plan (of orders that are built: no order at all is
// faster), when nothing is proven to fit, or when the effort is spent. Nothing that is done
// depends on the effort, which only says where to stop: more of it never ends at a slower plan.
//
// Schedules are independent within a step, the parts of a tree within a round, and steps and rounds
// exchange what they found in a fixed order, so the outcome does not depend on the number of
// threads. Budgets are counts.
#include "planner/search/joint/joint_search.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "planner/search/joint/joint_outcome.h"

namespace pfeife {

constexpr std::size_t kSpan = 10;        ///< of effort, at least
constexpr std::size_t kOfAllBefore = 3;  ///< a span is a third of all before it

JointSearch::JointSearch(const Problem& problem, const std::vector<ScheduleSpec>& built,
                         const SearchOptions& options, const SearchFunction& search)
    : problem_(problem),
      to_build_(built),
      options_(options),
      effort_(options.effort()),
      model_(problem.layers, problem.cluster, problem.memory_rule, problem.recomputes_all(),
             problem.norm) {
  for (const ScheduleSpec& spec : to_build_) {
    const auto memo = std::make_shared<OrderMemo>();
    by_itself_.emplace_back(model_, problem, spec, search, memo);
    from_others_.emplace_back(model_, problem, spec, search, memo);
    built_.push_back({.spec = spec, .memory_limit = problem.memory_limit});
  }
}

std::span<const JointSearch::TimedStep> JointSearch::first_steps() {
  static constexpr std::array steps{
      TimedStep{"start", &JointSearch::place_start},
      TimedStep{"polish", &JointSearch::polish_first},
      TimedStep{"bound", &JointSearch::bound_all},
      TimedStep{"descend", &JointSearch::descend_all, false},
  };
  return steps;
}

std::span<const JointSearch::TimedStep> JointSearch::steps_of_span() {
  static constexpr std::array steps{
      TimedStep{"anneal", &JointSearch::anneal_best, false},
      TimedStep{"bound", &JointSearch::bound_again},
      TimedStep{"build orders", &JointSearch::build_orders},
      TimedStep{"branch", &JointSearch::branch, false},
      TimedStep{"bound any order", &JointSearch::bound_any_order, false},
  };
  return steps;
}

std::span<const JointSearch::TimedStep> JointSearch::last_steps() {
  static constexpr std::array steps{
      TimedStep{"try all orders", &JointSearch::try_all_orders},
  };
  return steps;
}

std::vector<std::string_view> JointSearch::step_names() {
  std::vector<std::string_view> names;
  for (const auto steps : {first_steps(), steps_of_span(), last_steps()})
    for (const TimedStep& step : steps)
      if (std::ranges::find(names, step.name) == names.end()) names.push_back(step.name);
  return names;
}

Answer JointSearch::run() {
  const auto share = [&](std::size_t spent) {
    return search_work(std::min(spent, effort_)) / search_work(effort_);
  };
  run_steps(first_steps(), 0, share(0));
  for (; !is_done(); begun_ += span_) {
    span_ = std::max(kSpan, begun_ / kOfAllBefore);
    run_steps(steps_of_span(), share(begun_), share(begun_ + span_));
  }
  const std::size_t spent = std::clamp<std::size_t>(begun_, 1, effort_);
  begun_ = effort_;
  run_steps(last_steps(), 1, 1);
  return joint_outcome({problem_, options_, model_, contenders_, built_, any_order_},
                       std::move(history_), spent);
}

/// The one place that every step passes: left out or not, timed, told of. Each counts as much of
/// the progress from `begin` to `end` as the others.
void JointSearch::run_steps(std::span<const TimedStep> steps, double begin, double end) {
  const double each = (end - begin) / static_cast<double>(steps.size());
  for (const TimedStep& step : steps) {
    step_begin_ = begin + each * static_cast<double>(&step - steps.data());
    step_end_ = step_begin_ + each;
    if (step.run != &JointSearch::place_start &&
        std::ranges::find(options_.left_out, step.name) != options_.left_out.end())
      continue;
    const auto began = std::chrono::steady_clock::now();
    (this->*step.run)();
    reached(1);
    if (step.reports) report();
    if (!options_.after_step) continue;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    options_.after_step(
        {step.name, took.count(), known(best_time()), known(least_bound(contenders_))});
  }
}

void JointSearch::reached(double of_step) {
  if (options_.progress) options_.progress(step_begin_ + (step_end_ - step_begin_) * of_step);
}

void JointSearch::report() {
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

}  // namespace pfeife
