#include "planner/search/orders/sliced_order.h"

#include <algorithm>

#include "planner/cost/stages/sliced_stage_costs.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/schedules/zb_greedy.h"
#include "planner/search/price/price.h"

namespace pfeife {
namespace {

constexpr std::size_t kBuilds = 4;          ///< builds at most until the order fits into the memory
constexpr std::size_t kMovesOfSlices = 4;   ///< of the order, of each effort
constexpr std::size_t kRulesOfSlices = 16;  ///< of the grid at least

StageCosts costs_of_slices(const Problem& problem, const Choice& choice) {
  return sliced_stage_costs(stage_costs(problem.layers, choice.partition, choice.placement,
                                        problem.cluster, choice.activations, problem.norm),
                            choice.spec.slices, choice.spec.slice_lengths, problem.layers,
                            choice.partition, choice.placement, problem.cluster,
                            choice.activations);
}

/// [rank] What the limits leave for activations, before buffers.
std::vector<Bytes> rooms_of_slices(const Problem& problem, const StageCosts& costs,
                                   const Placement& placement) {
  std::vector<Bytes> room = problem.memory_limit, temporary(room.size());
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    const std::size_t r = placement.rank_of_stage[s].index();
    room[r] -= costs.stages[s].fixed();
    for (const StageCosts::Slice& slice : costs.slices)
      temporary[r] = std::max(temporary[r], slice.stages[s].temporary.largest());
  }
  for (std::size_t r = 0; r < room.size(); ++r) room[r] -= temporary[r];
  return room;
}

/// Judges orders of one choice by the exact memory rule.
class SlicedTrials {
 public:
  SlicedTrials(const Problem& problem, Choice choice)
      : problem_(problem), choice_(std::move(choice)) {}

  /// [rank] Bytes that the order needs beyond the limits; the order stays if it is the best so far
  /// that fits, or the last one where none does.
  std::vector<Bytes> add(const Order& order) {
    choice_.order = schedule_of(order, choice_.spec.slices);
    const Priced plan = price(problem_, choice_);
    std::vector<Bytes> over = must_fit(problem_, plan);
    bool fits = true;
    for (std::size_t r = 0; r < over.size(); ++r) {
      over[r] = std::max(Bytes{0}, over[r] - problem_.memory_limit[r]);
      fits = fits && over[r] == Bytes{0};
    }
    if (fits ? !time_ || plan.estimate < *time_ : !time_) best_ = *choice_.order;
    if (fits) time_ = std::min(time_.value_or(plan.estimate), plan.estimate);
    return over;
  }
  Schedule best() && { return std::move(best_); }

 private:
  const Problem& problem_;
  Choice choice_;
  Schedule best_;
  std::optional<Nanoseconds> time_;  // of the best that fits
};

}  // namespace

Schedule build_sliced_order(const Problem& problem, const Choice& choice, std::size_t effort) {
  const StageCosts costs = costs_of_slices(problem, choice);
  std::vector<Bytes> room = rooms_of_slices(problem, costs, choice.placement);
  SlicedTrials trials(problem, choice);
  for (std::size_t attempt = 0; attempt < kBuilds; ++attempt) {
    const std::vector<Bytes> over = trials.add(
        zero_bubble_order(costs, choice.placement, choice.spec.microbatches, room,
                          {.moves = kMovesOfSlices * effort, .rules = kRulesOfSlices + effort / 3})
            .order);
    if (std::ranges::count(over, Bytes{0}) == std::ssize(over)) break;
    for (std::size_t r = 0; r < room.size(); ++r) room[r] -= over[r];
  }
  // Rooms are less than what there is: one of these may fit that did not count as fitting.
  for (const Order& order :
       orders_in_closed_form(choice.placement, choice.spec.microbatches, choice.spec.slices))
    trials.add(order);
  return std::move(trials).best();
}

}  // namespace pfeife
