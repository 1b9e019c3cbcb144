#include "planner/search/steps/unequal_microbatches.h"

#include <algorithm>

#include "planner/cost/layers/microbatch_layers.h"
#include "planner/ir/basics/parallel.h"
#include "planner/schedules/families.h"
#include "planner/schedules/zb_greedy.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/joint/exact_descent.h"
#include "planner/search/joint/joint_outcome.h"
#include "planner/search/orders/microbatch_permutation.h"
#include "planner/search/pool/pool.h"
#include "planner/search/price/lack.h"
#include "planner/search/price/price.h"
#include "planner/search/price/stage_uses.h"

namespace pfeife {
namespace {

constexpr std::size_t kPolished = 8;  ///< schedules whose plans get other cuts and orders

/// [kind] What a microbatch of it computes, ns.
std::vector<double> loads(const StageCosts& costs) {
  std::vector<double> load;
  for (const StageCosts::Slice& kind : costs.kinds) {
    double& sum = load.emplace_back(0);
    for (const StageCost& stage : kind.stages)
      sum += static_cast<double>((stage.forward + stage.backward()).count());
  }
  return load;
}

/// The choices of all plans of a search, each once.
std::vector<Choice> choices_of(const Answer& answer) {
  std::vector<Choice> choices;
  for (const std::vector<Priced>* plans : {&answer.plans, &answer.all, &answer.front})
    for (const Priced& plan : *plans)
      if (std::ranges::find(choices, static_cast<const Choice&>(plan)) == choices.end())
        choices.push_back(plan);
  return choices;
}

std::optional<Priced> fitting_with_uses(const Problem& problem, Choice choice) {
  choice.receives = Receives::AsReady;
  auto plan = fitting(problem, choice);
  if (plan || !is_chosen(problem.recompute)) return plan;
  choice.activations = {};
  const auto uses = with_stage_uses(problem, choice, {.offload = false});
  return uses ? fitting(problem, *uses) : std::nullopt;
}

/// Plans for equal microbatches of the mean cost; where none of these fits, without a limit.
Answer plans_of_equal_ones(const Problem& problem, const SearchOptions& options,
                           const SearchFunction& search) {
  const Layers mean = mean_microbatch(problem.layers);
  Problem equal = with_layers(problem, mean);
  equal.order_microbatches = false;
  SearchOptions quiet = options;
  quiet.certificate = false, quiet.times = {};
  Answer found = search(equal, quiet);
  if (!found.plans.empty()) return found;
  quiet.progress = {};
  Problem roomy = without_limits(equal);
  if (!is_chosen(equal.recompute))
    roomy.recompute = equal.recompute, roomy.recompute_except_last = equal.recompute_except_last;
  return search(roomy, quiet);
}

/// [rank] What the limits leave for activations, before buffers.
std::vector<Bytes> rooms(const Problem& problem, const StageCosts& costs,
                         const Placement& placement) {
  std::vector<Bytes> room = problem.memory_limit, temporary(room.size());
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    const std::size_t r = placement.rank_of_stage[s].index();
    room[r] -= costs.stages[s].fixed();
    for (const StageCosts::Slice& kind : costs.kinds)
      temporary[r] = std::max(temporary[r], kind.stages[s].temporary.largest());
  }
  for (std::size_t r = 0; r < room.size(); ++r) room[r] -= temporary[r];
  return room;
}

/// The plan with an order that is built for its costs, with microbatches standing as they do in the
/// plan, if that fits and is faster; else the plan.
Priced with_built_order(const Problem& problem, Priced plan, std::size_t effort) {
  constexpr std::size_t kBuilds = 3;        // until the order fits
  constexpr std::size_t kMovesOfEach = 4;   // of the order, of each effort
  constexpr std::size_t kFewestRules = 16;  // of the grid
  if (!is_built(plan.spec) || !plan.rows) return plan;
  const MicrobatchOrder standing = forward_order(compute_only(plan));
  StageCosts costs = plan.rows->costs;
  for (std::size_t i = 0; i < standing.size(); ++i)
    costs.kind_of[i] = plan.rows->costs.kind_of[standing[i]];
  std::vector<Bytes> room = rooms(problem, costs, plan.placement);
  Choice choice = plan;
  for (std::size_t build = 0; build < kBuilds; ++build) {
    choice.order = relabelled(
        schedule_of(
            zero_bubble_order(costs, plan.placement, plan.spec.microbatches, room,
                              {.moves = kMovesOfEach * effort, .rules = kFewestRules + effort / 3})
                .order),
        standing);
    if (auto built = fitting(problem, choice))
      return built->estimate < plan.estimate ? *std::move(built) : plan;
    const std::vector<Bytes> needed = must_fit(problem, price(problem, choice));
    for (std::size_t r = 0; r < room.size(); ++r)
      room[r] -= std::max(Bytes{0}, needed[r] - problem.memory_limit[r]);
  }
  return plan;
}

/// Other orders and cuts around the plan's own, as long as each is faster.
Priced polished(const Problem& problem, Priced plan, const SearchOptions& options) {
  const auto ordered = [&](Priced start) {
    start = with_built_order(problem, std::move(start), options.effort());
    if (!problem.order_microbatches) return start;
    const Nanoseconds before = start.estimate;
    start = with_ordered_microbatches(problem, std::move(start), options.seed);
    return start.estimate < before ? with_built_order(problem, std::move(start), options.effort())
                                   : start;
  };
  plan = ordered(std::move(plan));
  if (problem.cuts) return plan;
  const Nanoseconds before = plan.estimate;
  plan = descended(problem, std::move(plan), options.effort());
  return plan.estimate < before ? ordered(std::move(plan)) : plan;
}

}  // namespace

Priced with_ordered_microbatches(const Problem& problem, Priced plan, std::uint64_t seed) {
  if (!plan.rows || plan.rows->costs.kinds.size() < 2) return plan;
  Choice given = plan;
  Schedule rows = compute_only(plan);
  // Rows of an order found before: from the order in which microbatches are given.
  MicrobatchOrder back(plan.spec.microbatches);
  const MicrobatchOrder now = forward_order(rows);
  for (std::uint32_t i = 0; i < now.size(); ++i) back[now[i]] = i;
  rows = relabelled(std::move(rows), back);
  given.order = rows;
  const Priced in_turn = price(problem, given);
  PermutedTimes times(in_turn.rows->lowered, in_turn.rows->costs, plan.placement);
  const StageCosts& costs = in_turn.rows->costs;
  const OrderSearch found =
      search_microbatch_order(times, costs.kind_of, loads(costs), {.seed = seed});
  for (const PermutedResult& order : found.best) {
    if (Nanoseconds{order.time} >= plan.estimate) break;
    given.order = relabelled(rows, order.order);
    if (auto ordered = fitting(problem, given); ordered && ordered->estimate < plan.estimate)
      return *std::move(ordered);
  }
  return plan;
}

Answer search_unequal_microbatches(const Problem& problem, const SearchOptions& options,
                                   const SearchFunction& search) {
  Answer equal = plans_of_equal_ones(problem, options, search);
  const std::vector<Choice> choices = choices_of(equal);
  std::vector<std::optional<Priced>> priced(choices.size());
  parallel_for(choices.size(), options.threads,
               [&](std::size_t i) { priced[i] = fitting_with_uses(problem, choices[i]); });
  std::vector<Priced> plans;
  std::optional<Infeasible> closest;
  std::vector<Rejected> rejected;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (priced[i]) {
      plans.push_back(*std::move(priced[i]));
      continue;
    }
    const Infeasible lack = lack_of(problem, price(problem, choices[i]));
    note_closest(lack, closest);
    rejected.push_back({choices[i].spec, lacks(lack)});
  }
  plans = best_of_each(std::move(plans));
  parallel_for(std::min(plans.size(), kPolished), options.threads,
               [&](std::size_t i) { plans[i] = polished(problem, std::move(plans[i]), options); });
  for (const Rejected& lost : equal.rejected)
    if (lost.reason.why == Why::Impossible)
      rejected.push_back(lost);
    else
      rejected.push_back({lost.spec, {.why = Why::NothingFound}});
  std::erase_if(rejected, [&](const Rejected& lost) {
    return std::ranges::find(plans, lost.spec, &Priced::spec) != plans.end();
  });
  std::vector<Rejected> once;
  for (Rejected& lost : rejected)
    if (std::ranges::find(once, lost.spec, &Rejected::spec) == once.end())
      once.push_back(std::move(lost));
  Pool pool(problem.memory_limit);
  pool.set_recompute(problem.recompute);
  pool.count(equal.candidates + choices.size(), equal.effort);
  pool.add(std::move(plans));
  pool.keep(options.keep);
  pool.reject(std::move(once));
  pool.add(closest);
  pool.prove_infeasible(false);
  if (!pool.answer().plans.empty())
    pool.claim(
        listed_claim(problem, {.time = Nanoseconds{static_cast<std::int64_t>(work_bound(problem))},
                               .given_cuts = problem.cuts.has_value(),
                               .recompute = problem.recompute,
                               .schedules = problem.schedules,
                               .memory_limit = problem.memory_limit}));
  return std::move(pool).take();
}

}  // namespace pfeife
