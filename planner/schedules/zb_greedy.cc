// zb_greedy and zbv_greedy: the order is built for the costs, so the families have no closed form.
// The second has two stages a rank in the shape of a V, as ZB-V and V-Half (Qi et al., "Pipeline
// Parallelism with Controllable Memory", NeurIPS 2024): what a microbatch keeps on a rank is then
// about the same on all, and the two stages of the last rank follow each other without a transfer.
//
//  1. Orders from scratch by every combination of a few rules (list_order.h), and those of the
//     families with a closed form, the same placement and as many slices, their backward split.
//  2. Where ZB-V needs more memory than there is: building blocks that need less, repeated, their
//     gaps filled (building_block.h, backfill.h).
//  3. Those within the memory are timed; the best few are improved by moving actions of the longest
//     path (order_descent.h).
//
// As families, without costs: every F, I and W takes the same time, slices alike, transfers none,
// no memory cap.
#include "planner/schedules/zb_greedy.h"

#include <algorithm>
#include <array>
#include <limits>
#include <ranges>
#include <span>

#include "planner/ir/schedule/slice_costs.h"
#include "planner/schedules/backfill.h"
#include "planner/schedules/building_block.h"
#include "planner/schedules/families.h"
#include "planner/schedules/list_order.h"
#include "planner/schedules/order_clock.h"

namespace pfeife {

Family zb_h1();
Family zb_h2();
Family zb1p();
Family one_forward_one_backward();
Family interleaved_1f1b();
Family zbv();
Family dualpipev();
Family seq1f1b();
Family slimpipe();

namespace {

constexpr std::size_t kImproved = 3;  ///< orders that are improved, the best of all first
constexpr std::size_t kMostActions = 20'000'000;  ///< decided over the grid, about

std::vector<ListRules> all_rules(bool one_stage_a_rank) {
  using Crowd = ListRules::Crowd;
  using Fill = ListRules::Fill;
  using Flight = ListRules::Flight;
  std::vector<ListRules> rules;
  // Large schedules try the first of them only: in an order of merit.
  for (const Fill fill : {Fill::Fairly, Fill::Half, Fill::Fitting, Fill::Always})
    for (const Flight flight :
         {Flight::Until, Flight::Once, Flight::Within, Flight::Memory, Flight::Twice})
      for (const bool deep_first : {true, false})
        for (const Crowd crowd : {Crowd::Never, Crowd::Always, Crowd::WarmUp})
          for (const bool forward_first : {false, true}) {
            if (one_stage_a_rank && !deep_first) continue;
            if (forward_first && flight == Flight::Memory) continue;
            rules.push_back({crowd, fill, forward_first, deep_first, flight});
          }
  return rules;
}
std::span<const ListRules> grid(std::size_t stages, std::size_t ranks) {
  static const std::vector<ListRules> without_depth = all_rules(true), whole = all_rules(false);
  return stages == ranks ? without_depth : whole;
}

bool fits_all(const OrderModel& model, const Order& order) {
  for (std::size_t r = 0; r < model.ranks; ++r)
    if (!fits(model, order, r)) return false;
  return true;
}

class Finder {
 public:
  Finder(const OrderModel& model, const ZeroBubbleOptions& options)
      : model_(model), clock_(model), options_(options) {}

  /// What takes longer by more than a little is not among the orders that are improved: those that
  /// fit come first. The time of a list itself is at most a little more than that of its order.
  std::int64_t enough() const {
    constexpr double kLate = 1.05;
    if (fitting_.size() < kImproved) return std::numeric_limits<std::int64_t>::max();
    std::array<std::int64_t, kImproved> least;
    std::ranges::partial_sort_copy(fitting_ | std::views::transform(&TimedOrder::time), least);
    return static_cast<std::int64_t>(kLate * static_cast<double>(least.back()));
  }
  void add(Order order) {
    const auto time = clock_.run(order);
    if (!time) return;
    auto& list = fits_all(model_, order) ? fitting_ : too_full_;
    if (std::ranges::find(list, order, &TimedOrder::order) == list.end())
      list.push_back({std::move(order), *time});
  }
  TimedOrder best() {
    auto& list = fitting_.empty() ? too_full_ : fitting_;
    std::ranges::stable_sort(list, {}, &TimedOrder::time);
    TimedOrder best = list.front();
    const std::size_t count = std::min(kImproved, list.size());
    for (std::size_t k = 0; k < count; ++k) {
      TimedOrder found = improve(model_, list[k], options_.moves / count);
      if (found.time < best.time) best = std::move(found);
    }
    return best;
  }

 private:
  const OrderModel& model_;
  OrderClock clock_;
  const ZeroBubbleOptions& options_;
  std::vector<TimedOrder> fitting_, too_full_;
};

ScheduleSpec on_a_v(const OrderModel& model, const char* family) {
  return {.family = family,
          .ranks = model.ranks,
          .microbatches = model.microbatches,
          .stages_per_rank = model.stages / model.ranks};
}

/// Repeated building blocks within the memory: V-Min and V-Half as they are, and all with their
/// gaps filled. They take about as long as `rules` of the grid.
std::vector<Order> repeated_blocks(const OrderModel& model, std::size_t rules) {
  constexpr std::size_t kRulesABlock = 5;
  std::vector<Order> orders;
  for (const char* name : {"v_min", "v_half"}) {
    Order order = *order_of(generate(on_a_v(model, name)));
    if (!fits_all(model, order)) continue;
    orders.push_back(backfilled(model, order).order);
    orders.push_back(std::move(order));
  }
  std::size_t left = rules / kRulesABlock;
  for (const BuildingBlock& block : building_blocks(model.ranks)) {
    if (left == 0) break;
    auto order = block.repeated(model.ranks, model.microbatches);
    if (!order || !fits_all(model, *order)) continue;
    orders.push_back(backfilled(model, *std::move(order)).order);
    --left;
  }
  return orders;
}

/// Start of each rank's first action, taken off its tail: what is left is its busy stretch.
void judge_by_span(OrderModel& model) {
  std::vector<std::int64_t> first(model.stages, 0);
  for (std::size_t s = 1; s < model.stages; ++s)
    for (const OrderModel::Wait& wait : model.waits[0][model.at(s, 0)])
      first[s] = std::max(
          first[s], first[wait.stage] + model.duration[0][model.at(wait.stage, 0)] + wait.delay);
  for (std::size_t r = 0; r < model.ranks; ++r)
    model.tail[r] = -first[model.stages_of_rank[r].front()];
}

std::optional<Refusal> any_stages_per_rank(const ScheduleSpec&) { return std::nullopt; }

Schedule for_equal_times(const ScheduleSpec& spec) {
  const Nanoseconds unit{1000 * static_cast<std::int64_t>(spec.slices)};
  StageCosts costs = uniform_costs(spec.stages(), unit, unit, unit, Nanoseconds{0});
  const double linear[] = {1};
  if (spec.slices > 1)
    costs = with_slices(std::move(costs), slice_ends(spec.slices, SliceLengths::Equal, 1), linear);
  return schedule_of(
      zero_bubble_order(costs, placement_for(spec), spec.microbatches, {}, {.moves = 0}).order,
      spec.slices);
}

}  // namespace

TimedOrder zero_bubble_order(const StageCosts& costs, const Placement& placement,
                             std::size_t microbatches, const std::vector<Bytes>& room,
                             const ZeroBubbleOptions& options) {
  OrderModel model(costs, placement, microbatches, room);
  if (options.span) judge_by_span(model);
  Finder finder(model, options);
  const std::span<const ListRules> rules = grid(model.stages, model.ranks);
  const std::size_t most = std::min(options.rules, kMostActions / model.actions());
  for (const ListRules& list_rules : rules.first(std::clamp<std::size_t>(most, 1, rules.size())))
    if (auto order = list_order(model, list_rules, finder.enough())) finder.add(*std::move(order));
  for (Order& order : orders_in_closed_form(placement, microbatches, model.slices))
    finder.add(std::move(order));
  if (wants_blocks(model, placement))
    for (Order& order : repeated_blocks(model, most)) finder.add(std::move(order));
  return finder.best();
}

bool wants_blocks(const OrderModel& model, const Placement& placement) {
  const ScheduleSpec zbv = on_a_v(model, "zbv");
  return model.period == 1 && !exactly_two_stages(zbv) &&
         placement.rank_of_stage == folded(zbv).rank_of_stage &&
         !fits_all(model, *order_of(generate(zbv)));
}

std::vector<Order> orders_in_closed_form(const Placement& placement, std::size_t microbatches,
                                         std::size_t slices) {
  const std::vector<Family> families =
      slices > 1
          ? std::vector{seq1f1b(), slimpipe()}
          : std::vector{zb_h1(), zb_h2(),    zb1p(), one_forward_one_backward(), interleaved_1f1b(),
                        zbv(),   dualpipev()};
  std::vector<Order> orders;
  for (const Family& family : families) {
    const ScheduleSpec spec{.family = family.name,
                            .ranks = placement.ranks(),
                            .microbatches = microbatches,
                            .stages_per_rank = placement.stages() / placement.ranks(),
                            .loop_batch = {},
                            .prefetch = {},
                            .slices = slices};
    if (family.refuse(spec)) continue;
    if (family.placement(spec).rank_of_stage != placement.rank_of_stage) continue;
    if (auto order = order_of(family.generate(spec))) orders.push_back(*std::move(order));
  }
  return orders;
}

std::size_t order_rules(std::size_t stages, std::size_t ranks) {
  return grid(stages, ranks).size();
}

std::optional<Order> order_by_rule(const OrderModel& model, std::size_t rule, std::int64_t enough) {
  return list_order(model, grid(model.stages, model.ranks)[rule], enough);
}

Family zb_greedy() {
  return {.name = "zb_greedy",
          .rule = "F, I and W in an order built for the costs under a memory cap",
          .refuse = any_stages_per_rank,
          .generate = for_equal_times,
          .placement = round_robin,
          .takes_slices = true,
          .takes_placement = true,
          .certified = false,
          .built_for_costs = true};
}

Family zbv_greedy() {
  return {.name = "zbv_greedy",
          .rule = "zb_greedy with two stages a rank in the shape of a V",
          .refuse = exactly_two_stages,
          .generate = for_equal_times,
          .placement = folded,
          .takes_slices = true,
          .certified = false,
          .built_for_costs = true};
}

}  // namespace pfeife
