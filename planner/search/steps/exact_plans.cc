#include "planner/search/steps/exact_plans.h"

#include <algorithm>
#include <set>

#include "planner/cost/stages/blocks.h"
#include "planner/schedules/families.h"
#include "planner/search/joint/exact_descent.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/orders/sliced_order.h"
#include "planner/search/price/lack.h"
#include "planner/search/price/price.h"
#include "planner/search/price/stage_uses.h"

namespace pfeife {
namespace {

constexpr std::size_t kEffortForCuts = 100;  ///< of the search for whole microbatches, at most
constexpr std::size_t kRounds = 3;  ///< of moving the cuts under an order and building another

}  // namespace

std::vector<Partition> cuts_of_work(const Problem& problem,
                                    const std::vector<ScheduleSpec>& schedules,
                                    const SearchOptions& options, const SearchFunction& search) {
  std::set<std::size_t> stages_per_rank;
  for (const ScheduleSpec& spec : schedules) stages_per_rank.insert(spec.stages_per_rank);
  Problem whole = without_limits(problem);
  whole.schedules.clear();
  for (const std::size_t v : stages_per_rank)
    whole.schedules.push_back({.family = v == 1 ? "1f1b" : "looped",
                               .ranks = schedules.front().ranks,
                               .microbatches = schedules.front().microbatches,
                               .stages_per_rank = v});
  SearchOptions brief = options;
  brief.certificate = false, brief.progress = {};
  brief.iterations = std::min(options.effort(), kEffortForCuts);
  std::vector<Partition> cuts;
  const Answer found = search(whole, brief);
  for (const std::vector<Priced>* plans : {&found.all, &found.front})
    for (const Priced& plan : *plans) cuts.push_back(plan.partition);
  return cuts;
}

void ExactPlans::plan(const ScheduleSpec& spec, const std::vector<Partition>& cuts) {
  std::vector<Priced> plans;
  std::optional<Infeasible> lack;
  std::set<Partition> tried;
  const auto attempt = [&](const Partition& partition) {
    if (partition.stages() != spec.stages() || !tried.insert(partition).second) return;
    const Choice choice = with_order({.spec = spec,
                                      .partition = partition,
                                      .placement = placement_for(spec, problem_.device_of_rank),
                                      .activations = all_or_nothing(spec)});
    ++candidates;
    if (auto plan = fitting_with_uses(choice))
      plans.push_back(*std::move(plan));
    else
      note_closest(lack_of(problem_, price(problem_, with_least_memory(choice))), lack);
  };
  for (const Partition& partition : cuts) attempt(partition);
  if (!problem_.cuts)
    for (const Partition& partition : few_partitions(problem_.layers, spec.stages()))
      attempt(partition);
  if (plans.empty() && lack && !problem_.cuts) {  // cuts that share the work lack memory
    const Choice choice{.spec = spec,
                        .partition = lack->partition,
                        .placement = placement_for(spec, problem_.device_of_rank),
                        .activations = all_or_nothing(spec)};
    if (const auto fits = moved_to_fit(problem_, with_least_memory(choice), most_))
      attempt(fits->partition);
  }
  if (plans.empty()) {
    note_closest(lack, closest);
    rejected.push_back({spec, lack ? lacks(*lack)
                                   : impossible("the model cannot be cut into " +
                                                std::to_string(spec.stages()) + " stages")});
    return;
  }
  Priced best = best_of_each(std::move(plans)).front();
  found.push_back(problem_.cuts ? std::move(best) : with_moved_cuts(std::move(best)));
}

Activations ExactPlans::all_or_nothing(const ScheduleSpec& spec) const {
  if (problem_.recompute != Recompute::Full) return {};
  return {.stages = std::vector<bool>(spec.stages(), true)};
}
Choice ExactPlans::with_least_memory(Choice choice) const {
  if (problem_.recompute == Recompute::Choose)
    choice.activations.stages.assign(choice.placement.stages(), true);
  if (problem_.recompute == Recompute::Blocks)
    choice.activations.blocks = cut_blocks(problem_.blocks, choice.partition);
  return choice;
}
std::optional<Priced> ExactPlans::fitting_with_uses(const Choice& choice) const {
  auto plan = fitting(problem_, choice);
  if (plan || !is_chosen(problem_.recompute)) return plan;
  const auto uses = with_stage_uses(problem_, choice, {.offload = false});
  if (!uses) return std::nullopt;
  plan = fitting(problem_, *uses);
  if (!is_built(choice.spec)) return plan;
  auto ordered = fitting(problem_, with_order(*uses));
  return ordered && (!plan || ordered->estimate < plan->estimate) ? ordered : plan;
}
Choice ExactPlans::with_order(Choice choice) const {
  if (is_built(choice.spec)) choice.order = build_sliced_order(problem_, choice, most_);
  return choice;
}
Priced ExactPlans::with_moved_cuts(Priced plan) const {
  plan = descended(problem_, std::move(plan), most_);
  const bool open = is_built(plan.spec) || is_chosen(problem_.recompute);
  for (std::size_t round = 1; round < kRounds && open; ++round) {
    Choice bare = plan;
    bare.activations = all_or_nothing(bare.spec);
    auto again = fitting_with_uses(with_order(std::move(bare)));
    if (!again || again->estimate >= plan.estimate) break;
    plan = descended(problem_, *std::move(again), most_);
  }
  return plan;
}

}  // namespace pfeife
