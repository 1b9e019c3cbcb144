#include "planner/search/orders/order_builder.h"

#include <algorithm>

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "planner/schedules/order_clock.h"

namespace pfeife {
namespace {

constexpr std::size_t kFits = 4;  ///< builds at most until the order fits into the memory

bool better(const Candidates& a, const Candidates& b) {
  if (a.best() || b.best()) return a.best_time() < b.best_time();
  return a.closest()->lacking() < b.closest()->lacking();
}

}  // namespace

OrderBuilder::OrderBuilder(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                           const ZeroBubbleOptions& options, OrderMemo& memo)
    : model_(model),
      problem_(problem),
      spec_(spec),
      placement_(placement_for(spec, problem.device_of_rank)),
      options_(options),
      memo_(memo) {}

/// What recomputing these stages is in the problem.
static Activations again(const std::vector<bool>& stages, const Problem& problem) {
  return {.stages = stages, .except_last = problem.recompute_except_last};
}

std::unique_ptr<Candidates> OrderBuilder::build(const Cuts& cuts) const {
  const std::size_t stages = placement_.stages();
  std::vector<bool> recompute(stages, problem_.recompute == Recompute::Full);
  std::vector<bool> full(stages, false);  // stages of ranks that have been too full
  auto best = build_for(cuts, recompute, full);
  if (!is_chosen(problem_.recompute)) return best;
  std::vector<std::vector<bool>> others{full, std::vector<bool>(stages, true)};
  if (full == recompute || full == others[1]) others.erase(others.begin());
  for (const std::vector<bool>& other : others) {
    if (load(cuts, other) >= best->best_time()) continue;
    if (auto built = build_for(cuts, other, full); better(*built, *best)) best = std::move(built);
  }
  return best;
}

/// ns that the busiest rank computes in a step: no order of them is faster.
double OrderBuilder::load(const Cuts& cuts, const std::vector<bool>& recompute) const {
  const StageCosts costs = this->costs(cuts, again(recompute, problem_));
  std::vector<Nanoseconds> of_rank(placement_.ranks());
  for (std::size_t s = 0; s < costs.stages.size(); ++s)
    of_rank[placement_.rank_of_stage[s].index()] +=
        costs.stages[s].forward + costs.stages[s].backward();
  return static_cast<double>(std::ranges::max(of_rank).count()) *
         static_cast<double>(spec_.microbatches);
}

std::unique_ptr<Candidates> OrderBuilder::improved(const Candidates& from, std::size_t moves,
                                                   std::uint64_t seed) const {
  std::optional<Order> start = order_of(from.schedule());
  if (!from.best() || !start) return nullptr;
  const StageCosts costs = this->costs(from.best_cuts(), from.best()->activations);
  const Fits fits = [&](const Order& order) {
    const Schedule lowered = lower(schedule_of(order), costs, placement_);
    return pfeife::fits(peak_memory(lowered, costs, placement_), problem_.memory_limit);
  };
  const OrderModel model(costs, placement_, spec_.microbatches, {});
  const auto time = OrderClock(model).run(*start);
  if (!time || !fits(*start)) return nullptr;
  const TimedOrder better = improve(model, {*std::move(start), *time}, moves, fits, seed);
  return judged(from.best_cuts(), schedule_of(better.order));
}

StageCosts OrderBuilder::costs(const Cuts& cuts, const Activations& activations) const {
  return stage_costs(model_.sums(), model_.partition(cuts), placement_, model_.cluster(),
                     activations, problem_.norm);
}

std::vector<Bytes> OrderBuilder::rooms(const StageCosts& costs) const {
  std::vector<Bytes> room = problem_.memory_limit, temporary(room.size());
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    const std::size_t r = placement_.rank_of_stage[s].index();
    room[r] -= costs.stages[s].fixed();
    temporary[r] = std::max(temporary[r], costs.stages[s].temporary.largest());
  }
  for (std::size_t r = 0; r < room.size(); ++r) room[r] -= temporary[r];
  return room;
}

std::unique_ptr<Candidates> OrderBuilder::judged(const Cuts& cuts, Schedule order) const {
  auto candidates = std::make_unique<Candidates>(model_, problem_, spec_, std::move(order));
  candidates->offer(cuts, candidates->time(cuts));
  return candidates;
}

/// The faster of V-Min and V-Half by the exact memory rule, of which rooms know only a part.
/// nullptr on another placement.
std::unique_ptr<Candidates> OrderBuilder::repeated_block(const Cuts& cuts) const {
  std::unique_ptr<Candidates> best;
  for (const Family& known : families()) {
    ScheduleSpec spec = spec_;
    spec.family = known.name;
    if (!known.only_by_name || known.side_by_side || refusal(spec) ||
        placement_for(spec).rank_of_stage != placement_.rank_of_stage)
      continue;
    auto found = judged(cuts, generate(spec));
    if (!best || better(*found, *best)) best = std::move(found);
  }
  return best;
}

/// The order for stages that are recomputed or not, and which ranks that makes too full.
std::unique_ptr<Candidates> OrderBuilder::build_for(const Cuts& cuts,
                                                    const std::vector<bool>& recompute,
                                                    std::vector<bool>& full) const {
  const StageCosts costs = this->costs(cuts, again(recompute, problem_));
  std::vector<Bytes> room = rooms(costs);
  const OrderModel model(costs, placement_, spec_.microbatches, room);
  std::unique_ptr<Candidates> block =
      wants_blocks(model, placement_) ? repeated_block(cuts) : nullptr;
  for (std::size_t attempt = 1;; ++attempt) {
    OrderMemo::Key key{cuts, recompute, {}, options_.rules, options_.moves};
    for (const Bytes bytes : room) key.room.push_back(bytes.value);
    auto candidates = judged(
        cuts, schedule_of(memo_.order(key, [&] {
          return zero_bubble_order(costs, placement_, spec_.microbatches, room, options_).order;
        })));
    if (block && block->best() && better(*block, *candidates)) candidates = std::move(block);
    const bool done = candidates->best() && !is_chosen(problem_.recompute);
    if (done || attempt == kFits) return candidates;
    const Choice choice{spec_, model_.partition(cuts), placement_, again(recompute, problem_)};
    const std::vector<Bytes> needed =
        must_fit(problem_, choice,
                 evaluate(model_.sums(), model_.cluster(), candidates->schedule(), placement_,
                          choice.partition, problem_.memory_rule, choice.activations));
    bool fits = true;
    for (std::size_t r = 0; r < room.size(); ++r) {
      const Bytes over = needed[r] - problem_.memory_limit[r];
      room[r] = std::min(room[r], room[r] - over);
      if (over <= Bytes{0}) continue;
      fits = false;
      for (std::size_t s = 0; s < full.size(); ++s)
        if (placement_.rank_of_stage[s].index() == r) full[s] = true;
    }
    if (fits) return candidates;
  }
}

}  // namespace pfeife
