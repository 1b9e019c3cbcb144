#include "planner/search/steps/sliced_schedules.h"

#include <algorithm>
#include <set>

#include "planner/cost/stages/blocks.h"
#include "planner/schedules/families.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/joint/exact_descent.h"
#include "planner/search/joint/joint_outcome.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/orders/sliced_order.h"
#include "planner/search/pool/pool.h"
#include "planner/search/price/lack.h"
#include "planner/search/price/price.h"
#include "planner/search/price/stage_uses.h"

namespace pfeife {
namespace {

constexpr std::size_t kEffortForCuts = 100;  ///< of the search for whole microbatches, at most
constexpr std::size_t kRounds = 3;  ///< of moving the cuts under an order and building another

bool is_sliced(const ScheduleSpec& spec) { return spec.slices > 1; }

/// Good cuts for the work of whole microbatches, as many stages as the sliced schedules have.
std::vector<Partition> cuts_of_work(const Problem& problem, const std::vector<ScheduleSpec>& sliced,
                                    const SearchOptions& options, const SearchFunction& search) {
  std::set<std::size_t> stages_per_rank;
  for (const ScheduleSpec& spec : sliced) stages_per_rank.insert(spec.stages_per_rank);
  Problem whole = without_limits(problem);
  whole.schedules.clear();
  for (const std::size_t v : stages_per_rank)
    whole.schedules.push_back({.family = v == 1 ? "1f1b" : "looped",
                               .ranks = sliced.front().ranks,
                               .microbatches = sliced.front().microbatches,
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

/// The plans of schedules with slices, and why others have none.
class SlicedPlans {
 public:
  SlicedPlans(const Problem& problem, std::size_t most) : problem_(problem), most_(most) {}

  void plan(const ScheduleSpec& spec, const std::vector<Partition>& cuts) {
    std::vector<Priced> plans;
    std::optional<Infeasible> lack;
    std::set<Partition> tried;
    const auto attempt = [&](const Partition& partition) {
      if (partition.stages() != spec.stages() || !tried.insert(partition).second) return;
      const Choice choice = with_order({.spec = spec,
                                        .partition = partition,
                                        .placement = placement_for(spec, problem_.device_of_rank),
                                        .recomputed = all_or_nothing(spec)});
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
                          .recomputed = all_or_nothing(spec)};
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

  std::vector<Priced> found;
  std::vector<Rejected> rejected;
  std::optional<Infeasible> closest;
  std::size_t candidates = 0;

 private:
  /// What is computed again of every plan.
  Recomputed all_or_nothing(const ScheduleSpec& spec) const {
    if (problem_.recompute != Recompute::Full) return {};
    return {.stages = std::vector<bool>(spec.stages(), true)};
  }
  /// The choice with all recomputed that may be.
  Choice with_least_memory(Choice choice) const {
    if (problem_.recompute == Recompute::Choose)
      choice.recomputed.stages.assign(choice.placement.stages(), true);
    if (problem_.recompute == Recompute::Blocks)
      choice.recomputed.blocks = cut_blocks(problem_.blocks, choice.partition);
    return choice;
  }
  /// The choice if it fits, else with stages that compute again what they save, and an order for
  /// that if its family builds one.
  std::optional<Priced> fitting_with_uses(const Choice& choice) const {
    auto plan = fitting(problem_, choice);
    if (plan || !is_chosen(problem_.recompute)) return plan;
    const auto uses = with_stage_uses(problem_, choice, {.offload = false});
    if (!uses) return std::nullopt;
    plan = fitting(problem_, *uses);
    if (!is_built(choice.spec)) return plan;
    auto ordered = fitting(problem_, with_order(*uses));
    return ordered && (!plan || ordered->estimate < plan->estimate) ? ordered : plan;
  }
  /// With an order for its cuts, if its family builds one.
  Choice with_order(Choice choice) const {
    if (is_built(choice.spec)) choice.order = build_sliced_order(problem_, choice, most_);
    return choice;
  }
  /// Order and uses stay while the cuts move under them; then the cuts get others of their own.
  Priced with_moved_cuts(Priced plan) const {
    plan = descended(problem_, std::move(plan), most_);
    const bool open = is_built(plan.spec) || is_chosen(problem_.recompute);
    for (std::size_t round = 1; round < kRounds && open; ++round) {
      Choice bare = plan;
      bare.recomputed = all_or_nothing(bare.spec);
      auto again = fitting_with_uses(with_order(std::move(bare)));
      if (!again || again->estimate >= plan.estimate) break;
      plan = descended(problem_, *std::move(again), most_);
    }
    return plan;
  }

  const Problem& problem_;
  std::size_t most_;
};

/// What holds for all schedules of the problem.
Claim work_claim(const Problem& problem) {
  return listed_claim(problem, {.time = Nanoseconds{static_cast<std::int64_t>(work_bound(problem))},
                                .given_cuts = problem.cuts.has_value(),
                                .recompute = problem.recompute,
                                .schedules = problem.schedules,
                                .memory_limit = problem.memory_limit});
}

}  // namespace

bool has_slices(const Problem& problem) {
  return std::ranges::any_of(problem.schedules, is_sliced);
}

void add_sliced_plans(const Problem& problem, const SearchOptions& options,
                      const SearchFunction& search, Pool& pool) {
  std::vector<ScheduleSpec> sliced;
  std::ranges::copy_if(problem.schedules, std::back_inserter(sliced), is_sliced);
  SlicedPlans plans(problem, options.effort());
  std::vector<Partition> cuts;
  if (problem.cuts)
    cuts.push_back(*problem.cuts);
  else
    cuts = cuts_of_work(problem, sliced, options, search);
  for (const Priced& plan : pool.answer().all) cuts.push_back(plan.partition);
  // Orders that are built go last: on the cuts of those that are written down, too.
  std::ranges::stable_partition(sliced, std::not_fn(is_built));
  for (const ScheduleSpec& spec : sliced) {
    plans.plan(spec, cuts);
    cuts.push_back(plans.found.empty() ? cuts.front() : plans.found.back().partition);
  }
  pool.count(plans.candidates);
  pool.add(std::move(plans.found));
  pool.keep(options.keep);
  pool.reject(std::move(plans.rejected));
  pool.add(plans.closest);
  pool.prove_infeasible(false);
  pool.claim(pool.answer().plans.empty() ? Claim{} : work_claim(problem));
}

}  // namespace pfeife
