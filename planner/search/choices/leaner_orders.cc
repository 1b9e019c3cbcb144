#include "planner/search/choices/leaner_orders.h"

#include <algorithm>

#include "planner/ir/basics/parallel.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/orders/sliced_order.h"
#include "planner/search/price/price.h"

namespace pfeife {
namespace {

constexpr int kTighter = 5;                  ///< limits that are tried, each half way
constexpr std::size_t kEffortOnSlices = 50;  ///< on an order of slices

/// The plan with an order that is built for its cuts within the problem's limits, if one fits.
std::optional<Priced> with_other_order(const Problem& problem, const Priced& plan,
                                       const CutModel& model, const Cuts& cuts) {
  if (plan.spec.slices > 1) {
    Choice choice = plan;
    choice.order = build_sliced_order(problem, plan, kEffortOnSlices);
    return fitting(problem, std::move(choice));
  }
  if (!problem.layers->microbatches.empty()) return std::nullopt;  // orders are of equal ones
  const auto built = build_on_cuts(model, problem, plan.spec, cuts);
  std::optional<Priced> found = built->best();
  if (found) found->order = built->schedule();
  return found;
}

/// The least full one found for the plan that takes no more than `most`.
std::optional<Priced> leaner_order(const Problem& problem, const Priced& plan, Nanoseconds most) {
  const CutModel model(problem.layers, problem.cluster, problem.memory_rule,
                       problem.recomputes_all(), problem.norm);
  const auto cuts = model.cuts(plan.partition);
  if (!cuts) return std::nullopt;
  Problem tight = problem;
  if (is_chosen(tight.recompute)) tight.recompute = Recompute::None;
  tight.receives = plan.receives;
  tight.allocator.reset();  // whoever takes one of them plays it
  std::optional<Priced> found;
  double none = 0, enough = fullness(plan.peak_memory, problem.memory_limit);  // of the limits
  for (int step = 0; step < kTighter; ++step) {
    const double share = (none + enough) / 2;
    for (std::size_t r = 0; r < tight.memory_limit.size(); ++r)
      tight.memory_limit[r] = Bytes{
          static_cast<std::int64_t>(share * static_cast<double>(problem.memory_limit[r].value))};
    if (auto other = with_other_order(tight, plan, model, *cuts);
        other && other->estimate <= most) {
      found = std::move(other);
      enough = fullness(found->peak_memory, problem.memory_limit);
    } else {
      none = share;
    }
  }
  return found;
}

}  // namespace

std::vector<Priced> leaner_orders(const Problem& problem, const std::vector<Priced>& plans,
                                  double slower, std::size_t threads) {
  if (plans.empty()) return {};
  const Nanoseconds fastest = std::ranges::min_element(plans, {}, &Priced::estimate)->estimate;
  const Nanoseconds most =
      fastest +
      Nanoseconds{static_cast<std::int64_t>(slower * static_cast<double>(fastest.count()))};
  std::vector<const Priced*> built;
  for (const Priced& plan : plans)
    if (plan.order && plan.estimate <= most &&
        (!plan.activations.recomputes() || !is_chosen(problem.recompute)))
      built.push_back(&plan);
  std::vector<std::optional<Priced>> found(built.size());
  parallel_for(built.size(), threads,
               [&](std::size_t i) { found[i] = leaner_order(problem, *built[i], most); });
  std::vector<Priced> leaner;
  for (std::optional<Priced>& plan : found)
    if (plan) leaner.push_back(*std::move(plan));
  return leaner;
}

}  // namespace pfeife
