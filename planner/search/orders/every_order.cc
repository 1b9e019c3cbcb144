#include "planner/search/orders/every_order.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "planner/search/orders/fastest_order.h"
#include "planner/search/price/price.h"

namespace pfeife {
namespace {

constexpr std::size_t kMostCuts = 3000;
constexpr std::size_t kMostStates = 600'000;

/// How many ways there are to cut at `places` into `stages`; more than kMostCuts count as one more.
std::size_t ways_to_cut(std::size_t places, std::size_t stages) {
  std::size_t ways = 1;
  for (std::size_t k = 1; k < stages && ways <= kMostCuts; ++k)
    ways = places < k ? 0 : ways * (places - k + 1) / k;
  return std::min(ways, kMostCuts + 1);
}

void for_each_cuts(const CutModel& model, std::size_t stages,
                   const std::function<void(const Cuts&)>& visit) {
  Cuts cuts{0};
  const std::function<void()> extend = [&] {
    if (cuts.size() == stages) {
      cuts.push_back(model.last());
      visit(cuts);
      cuts.pop_back();
      return;
    }
    for (std::int32_t at = cuts.back() + 1; at < model.last(); ++at) {
      cuts.push_back(at);
      extend();
      cuts.pop_back();
    }
  };
  extend();
}

/// Every choice of recomputed stages ([stage]) that the problem leaves.
std::vector<std::vector<bool>> recomputations(Recompute recompute, std::size_t stages) {
  if (recompute != Recompute::Choose) return {std::vector(stages, recompute == Recompute::Full)};
  std::vector<std::vector<bool>> all(std::size_t{1} << stages);
  for (std::size_t k = 0; k < all.size(); ++k)
    for (std::size_t s = 0; s < stages; ++s) all[k].push_back((k >> s & 1U) != 0);
  return all;
}

class Trials {
 public:
  Trials(const CutModel& model, const Problem& problem, const ScheduleSpec& spec, double enough)
      : model_(model),
        problem_(problem),
        spec_(spec),
        placement_(placement_for(spec, problem.device_of_rank)),
        enough_(enough < kLong ? static_cast<std::int64_t>(enough) : kNone) {}

  void try_partition(const Partition& partition) {
    for (const std::vector<bool>& recompute : recomputations(problem_.recompute, spec_.stages())) {
      const StageCosts costs = stage_costs(model_.sums(), partition, placement_, model_.cluster(),
                                           {recompute}, problem_.norm);
      const OrderTrial at_need = trial(costs, Receives::AtNeed);
      if (settled(at_need, costs, partition, recompute) ||
          settled(trial(costs, Receives::AsReady), costs, partition, recompute))
        continue;
      unsettled_ = std::min(unsettled_, at_need.time);
    }
  }
  EveryOrder found() && {
    return {std::move(faster_), static_cast<double>(std::min(unsettled_, enough_))};
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  static constexpr double kLong = 1e18;

  OrderTrial trial(const StageCosts& costs, Receives receives) {
    return fastest_order(costs, placement_, spec_.microbatches, problem_.memory_limit, receives,
                         enough_, budget_);
  }
  /// Nothing of these costs is faster, or what is fits and is as fast as the trial says.
  bool settled(const OrderTrial& trial, const StageCosts& costs, const Partition& partition,
               const std::vector<bool>& recompute) {
    if (!trial.fastest) return trial.tried_all;
    Choice choice{spec_, partition, placement_, {recompute}, trial.fastest};
    if (!choice.activations.recomputes()) choice.activations = {};
    const auto fit = [&](const Prices& plan) {
      return fits(must_fit(problem_, choice, plan), problem_.memory_limit);
    };
    Prices plan = evaluate_lowered(costs, lower(*trial.fastest, costs, placement_), placement_);
    if (!fit(plan) && problem_.receives == Receives::AtNeed)
      plan = received_late(std::move(plan), placement_);
    if (!fit(plan)) return false;
    const std::int64_t time = plan.estimate.count();
    if (time < enough_) {
      enough_ = time;
      faster_ = priced(std::move(choice), std::move(plan));
    }
    return time <= trial.time;
  }

  const CutModel& model_;
  const Problem& problem_;
  const ScheduleSpec& spec_;
  Placement placement_;
  std::int64_t enough_, unsettled_ = kNone;  // ns
  std::optional<Priced> faster_;
  std::size_t budget_ = kMostStates;
};

}  // namespace

bool may_try_every_order(const CutModel& model, const Problem& problem, const ScheduleSpec& spec) {
  return problem.memory_rule == MemoryRule::Lifetimes && problem.recompute != Recompute::Blocks &&
         !problem.recompute_except_last && few_orders(placement_for(spec), spec.microbatches) &&
         ways_to_cut(static_cast<std::size_t>(model.last()) - 1, spec.stages()) <= kMostCuts;
}

EveryOrder try_every_order(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                           double enough) {
  Trials trials(model, problem, spec, enough);
  if (problem.cuts)
    trials.try_partition(*problem.cuts);
  else
    for_each_cuts(model, spec.stages(),
                  [&](const Cuts& cuts) { trials.try_partition(model.partition(cuts)); });
  return std::move(trials).found();
}

bool runs_on_a_chain(const Schedule& compute_only) {
  return validate(compute_only, requirements_of(compute_only, false)).empty();
}

}  // namespace pfeife
