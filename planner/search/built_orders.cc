#include "planner/search/built_orders.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "planner/ir/error.h"
#include "planner/ir/parallel.h"
#include "planner/schedules/families.h"
#include "planner/search/lack.h"
#include "planner/search/local_search.h"
#include "planner/search/order_annealing.h"
#include "planner/search/start_cuts.h"

namespace pfeife {
namespace {

constexpr std::size_t kStarts = 3;  ///< cuts that orders are built for at first
constexpr std::size_t kRounds = 3;  ///< of moving the cuts and building again
constexpr std::size_t kMovesOnCuts = 1000;
constexpr std::size_t kMoves = 4;     ///< OrderBuilder, of all effort so far
constexpr std::size_t kRules = 16;    ///< of the grid at least
constexpr std::size_t kTurns = 7000;  ///< that annealing with new orders decides, of effort 1
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Takes a plan if it is the best so far, and the least bad failure.
void take(const std::optional<PlannedSchedule>& plan, const std::optional<Infeasible>& lack,
          BuiltPlan& result) {
  note_closest(lack, result.closest);
  if (plan && (!result.plan || plan->estimate < result.plan->estimate)) result.plan = plan;
}
void take(const Candidates& candidates, BuiltPlan& result) {
  std::optional<PlannedSchedule> plan = candidates.best();
  if (plan) plan->order = candidates.schedule();
  take(plan, candidates.closest(), result);
}

/// Builds an order, moves the cuts under it, builds again, and so on.
class Run {
 public:
  /// Goes on from `present`; writes what it finds to `result`.
  Run(const OrderBuilder& builder, OrderedCuts present, BuiltPlan& result)
      : builder_(builder), result_(result), present_(std::move(present)) {}

  /// An order for the cuts becomes the present one if it is better. False if it is not.
  bool build(const Cuts& cuts) {
    std::unique_ptr<Candidates> built = builder_.build(cuts);
    take(*built, result_);
    const Scored scored = score(*built, cuts);
    result_.candidates += built->evaluated();
    if (scored.score >= present_.at.score) return false;
    present_ = {std::move(built), scored};
    return true;
  }
  const Cuts& cuts() const { return present_.at.cuts; }
  Candidates& order() { return *present_.order; }
  OrderedCuts found() && { return std::move(present_); }

  /// Moves the cuts with new orders for each, then the best of them for the order it has.
  void move_cuts(std::size_t effort, std::uint64_t seed) {
    anneal_order(effort, seed);
    move_under_order(effort, seed);
  }

 private:
  void anneal_order(std::size_t effort, std::uint64_t seed) {
    const ScheduleSpec& spec = builder_.spec();
    const std::size_t actions = kParts * spec.stages() * spec.microbatches;
    std::vector<bool> recompute(spec.stages(), builder_.problem().recompute != Recompute::None);
    if (order().best()) recompute = order().best()->recompute;
    auto found = anneal_orders(builder_, cuts(), recompute, effort * kTurns / actions, seed,
                               result_.candidates);
    if (!found) return;
    take(*found, result_);
    const Scored scored = score(*found, found->best_cuts());
    if (scored.score >= present_.at.score) return;
    present_ = {std::move(found), scored};
    build(cuts());
  }
  void move_under_order(std::size_t effort, std::uint64_t seed) {
    for (std::size_t round = 0; round < kRounds; ++round) {
      const std::size_t before = order().evaluated();
      Scored moved = descend(order(), present_.at, 400);
      if (round == 0) moved = descend(order(), anneal(order(), moved, 4 * effort, seed), 400);
      order().offer(moved.cuts, order().time(moved.cuts));
      take(order(), result_);
      result_.candidates += order().evaluated() - before;
      if (moved.score < present_.at.score) present_.at = moved;
      if (!build(cuts())) break;
    }
  }

  const OrderBuilder& builder_;
  BuiltPlan& result_;
  OrderedCuts present_;  // whose cuts are moved
};

/// Every microbatch's forward and backward before the next one's: no order needs less memory.
Schedule one_after_the_other(const ScheduleSpec& spec, const Placement& placement) {
  Schedule schedule;
  schedule.rows.resize(spec.ranks);
  for (std::size_t m = 0; m < spec.microbatches; ++m)
    for (const Op op : {Op::Forward, Op::Backward})
      for (std::size_t k = 0; k < placement.stages(); ++k) {
        const std::size_t s = op == Op::Forward ? k : placement.stages() - 1 - k;
        const StageId stage{static_cast<std::int64_t>(s)};
        const MicrobatchId microbatch{static_cast<std::int64_t>(m)};
        schedule.rows[placement.rank_of_stage[s].index()].emplace_back(
            op == Op::Forward ? forward(stage, microbatch) : backward(stage, microbatch));
      }
  return schedule;
}

/// One microbatch on the placement of `spec`.
ScheduleSpec one_in_closed_form(const ScheduleSpec& spec) {
  const auto placement = placement_for(spec).rank_of_stage;
  ScheduleSpec one{"zb1p", spec.ranks, 1, spec.loops, {}, {}};
  for (const char* name : {"zb_h1", "zbv", "zb1p"}) {
    one.family = name;
    if (!refusal(one) && placement_for(one).rank_of_stage == placement) break;
  }
  return one;
}

}  // namespace

bool is_built(const ScheduleSpec& spec) { return family(spec.family).built_for_costs; }

std::unique_ptr<Candidates> build_on_cuts(const CutModel& model, const Problem& problem,
                                          const ScheduleSpec& spec, const Cuts& cuts) {
  return OrderBuilder(model, problem, spec, {.moves = kMovesOnCuts}).build(cuts);
}

OneMicrobatch one_microbatch(const Problem& problem, const ScheduleSpec& spec) {
  // Whether a rank does B or I and W, it is never below this: nothing is kept from I to W, and
  // neither rises higher than B.
  Layers least = problem.layers;
  for (Layer& layer : least.layers) {
    PassBytes& temporary = layer.temporary;
    temporary.input = std::min(temporary.input, temporary.backward);
    temporary.weight = std::min(temporary.weight, temporary.backward);
    layer.weight_saved = Bytes{0};
  }
  for (LayerStorage& storage : least.storages) storage.weight_savers.clear();
  const Problem one{least,
                    problem.cluster,
                    {one_in_closed_form(spec)},
                    problem.device_of_rank,
                    problem.memory_limit,
                    problem.cuts,
                    problem.memory_rule,
                    problem.recompute};
  const SearchOutcome outcome = search(one, {.keep = 1, .iterations = 30});
  if (!outcome.plans.empty()) return {outcome.plans[0].partition, false};
  return {{}, !outcome.infeasible || outcome.infeasible->proven};
}

std::vector<Cuts> BuiltSearch::new_starts(const std::vector<Partition>& starts) {
  std::vector<Cuts> found;
  for (const Partition& partition : starts) {
    if (started_.size() == kStarts) break;
    if (partition.stages() != result_.spec.stages()) continue;
    Cuts cuts = *model_.cuts(partition);
    if (std::ranges::find(started_, cuts) != started_.end()) continue;
    started_.push_back(cuts);
    found.push_back(std::move(cuts));
  }
  return found;
}

void BuiltSearch::work(const std::vector<Partition>& starts, std::size_t effort,
                       std::uint64_t seed) {
  worked_ += effort;
  const OrderBuilder builder(model_, problem_, result_.spec,
                             {.moves = kMoves * worked_, .rules = kRules + worked_ / 3});
  std::vector<Partition> first;
  if (started_.empty()) {
    const auto equal_time = equal_time_cuts(problem_.layers, builder.placement(), problem_.cluster);
    if (!equal_time) {
      result_.impossible =
          stream_all("the model has no ", result_.spec.stages(), " stages: too few legal cuts");
      return;
    }
    first = {*equal_time};
  }
  first.insert(first.end(), starts.begin(), starts.end());
  Run run(builder, std::move(best_), result_);
  if (!started_.empty()) run.build(run.cuts());  // with more rules and moves than before
  for (const Cuts& cuts : new_starts(first)) run.build(cuts);
  if (!result_.plan) run.build(roomy_cuts(run.order(), run.cuts()));
  if (first_.empty()) first_ = run.cuts();
  const bool anew = calls_++ % 2 == 1;
  if (!anew) run.move_cuts(effort, seed);
  best_ = std::move(run).found();
  if (anew) begin_anew(builder, effort, seed);
  if (!result_.plan) try_one_by_one(builder);
  if (!result_.plan && problem_.recompute == Recompute::Choose)
    work_without_recomputation(starts, effort, seed);
}

/// Every other call, so that what the first ones found is not all there is to find.
void BuiltSearch::begin_anew(const OrderBuilder& builder, std::size_t effort, std::uint64_t seed) {
  Run run(builder, {}, result_);
  run.build(first_);
  run.move_cuts(effort, seed);
  OrderedCuts found = std::move(run).found();
  if (found.at.score < best_.at.score) best_ = std::move(found);
}

/// No order needs less memory than one microbatch after the other.
void BuiltSearch::try_one_by_one(const OrderBuilder& builder) {
  if (tried_one_by_one_) return;
  tried_one_by_one_ = true;
  const OneMicrobatch one = one_microbatch(problem_, result_.spec);
  result_.nothing_fits = one.nothing_fits;
  if (!one.cuts) return;
  const Cuts cuts = *model_.cuts(*one.cuts);
  Run run(builder, std::move(best_), result_);
  run.build(cuts);
  best_ = std::move(run).found();
  Candidates in_turn(model_, problem_, result_.spec,
                     one_after_the_other(result_.spec, builder.placement()));
  in_turn.offer(cuts, in_turn.time(cuts));
  take(in_turn, result_);
  result_.candidates += in_turn.evaluated();
}

/// The choice of stages may have led to other cuts; those that fit without any may have been
/// missed.
void BuiltSearch::work_without_recomputation(const std::vector<Partition>& starts,
                                             std::size_t effort, std::uint64_t seed) {
  if (!without_) {
    kept_ = std::make_unique<Problem>(problem_);
    kept_->recompute = Recompute::None;
    without_ = std::make_unique<BuiltSearch>(model_, *kept_, result_.spec);
  }
  const std::size_t before = without_->result().candidates;
  without_->work(starts, effort, seed);
  take(without_->result().plan, without_->result().closest, result_);
  result_.candidates += without_->result().candidates - before;
}

}  // namespace pfeife
