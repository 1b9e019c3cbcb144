#include "planner/search/steps/offloading.h"

#include <algorithm>
#include <utility>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/parallel.h"
#include "planner/search/joint/exact_descent.h"
#include "planner/search/price/price.h"
#include "planner/search/price/stage_uses.h"

namespace pfeife {
namespace {

constexpr std::size_t kMostMoved = 100;  ///< cuts that are priced besides those of the search

/// What a plan's cuts and schedule become: a plan that fits, or one that lacks something on a host.
struct PlanOrLack {
  std::optional<Priced> plan;
  std::optional<HostLack> lack;
};

PlanOrLack plan_or_lack(const Problem& problem, const Choice& choice) {
  if (const auto fits = with_stage_uses(problem, choice, {.offload = true})) {
    if (!fits->activations.offloads()) return {};  // the search has found it
    return {.plan = fitting(problem, *fits), .lack = {}};
  }
  if (!problem.cluster->host_memory) return {};
  const auto fits_devices = with_stage_uses(problem, choice, {.offload = true, .limited = false});
  if (!fits_devices || !fits_devices->activations.offloads()) return {};
  const std::optional<Shortage> lack = host_shortage(problem, price(problem, *fits_devices));
  if (!lack) return {};
  return {.plan = {}, .lack = HostLack{*lack, name_of(*fits_devices)}};
}

/// The choice with all computed again and offloaded that may be.
Choice with_least_memory(const Problem& problem, Choice choice) {
  const bool again = is_chosen(problem.recompute) || problem.recompute == Recompute::Full;
  if (again) choice.activations.stages.assign(choice.placement.stages(), true);
  choice.activations.offload.assign(choice.placement.stages(), 1.0);
  return choice;
}

/// The plan while its cuts move, and then its stages' uses are chosen again.
Priced improved(const Problem& problem, Priced plan, std::size_t most) {
  plan = descended(problem, std::move(plan), most);
  PlanOrLack again = plan_or_lack(problem, plan);
  return again.plan && again.plan->estimate < plan.estimate ? *std::move(again.plan) : plan;
}

}  // namespace

void add_offloading_plans(const Problem& problem, const SearchOptions& options,
                          const SearchFunction& search, Pool& pool) {
  const bool linked = std::ranges::any_of(problem.device_of_rank, [&](DeviceId device) {
    return problem.cluster->kind(device).host_link.has_value();
  });
  if (!linked)
    throw ConfigError(
        {}, "plan.offload is auto, but no device of the cluster " + problem.cluster->name +
                " has a way to its host; give its kind a host_link in the cluster "
                "file, as host_link: {bandwidth: 25 GB/s}, or leave plan.offload out");
  SearchOptions quiet = options;
  quiet.progress = {}, quiet.after_step = {}, quiet.times = {}, quiet.certificate = false;
  Answer roomy = search(without_limits(problem), quiet);
  std::vector<PlanOrLack> all(roomy.plans.size());
  parallel_for(all.size(), options.threads,
               [&](std::size_t i) { all[i] = plan_or_lack(problem, roomy.plans[i]); });
  std::vector<Priced> plans;
  const std::size_t most = std::min<std::size_t>(options.effort(), kMostMoved);
  const bool open = !problem.cuts && !roomy.plans.empty();
  if (open &&
      std::ranges::none_of(all, [](const PlanOrLack& found) { return found.plan.has_value(); }))
    if (const auto fits =
            moved_to_fit(problem, with_least_memory(problem, roomy.plans.front()), most))
      all.push_back(plan_or_lack(problem, *fits));
  for (PlanOrLack& of_plan : all) {
    if (of_plan.lack) pool.note_host_lack(*std::move(of_plan.lack));
    if (of_plan.plan) plans.push_back(*std::move(of_plan.plan));
  }
  if (plans.empty()) return;
  if (open) {
    const auto fastest = std::ranges::min_element(plans, {}, &Priced::estimate);
    *fastest = improved(problem, std::move(*fastest), most);
  }
  pool.add(std::move(plans));
  pool.set_recompute(problem.recompute);
  Claim claim = std::move(roomy);
  if (std::optional<Bound>& bound = claim.bound)
    bound->memory_limit = problem.memory_limit, bound->recompute = problem.recompute;
  for (Covered& covered : claim.covered) covered.offload = true;
  pool.claim(std::move(claim));
}

}  // namespace pfeife
