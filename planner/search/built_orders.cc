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

constexpr std::size_t kStarts = 3;    ///< cuts that orders are built for at first
constexpr std::size_t kRounds = 3;    ///< of moving the cuts and building again
constexpr std::size_t kRestarts = 4;  ///< of annealing, which begins at the same order and cuts
constexpr std::size_t kMovesOnCuts = 1000;
constexpr std::size_t kTurns = 2000;  ///< that annealing with new orders decides, of effort 1
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
  /// Writes what it finds to `result`.
  Run(const OrderBuilder& builder, BuiltPlan& result) : builder_(builder), result_(result) {}

  /// An order for the cuts becomes the present one if it is better. False if it is not.
  bool build(const Cuts& cuts) {
    std::unique_ptr<Candidates> built = builder_.build(cuts);
    take(*built, result_);
    const Scored scored = score(*built, cuts);
    result_.candidates += built->evaluated();
    if (scored.score >= at_.score) return false;
    at_ = scored, present_ = std::move(built);
    return true;
  }
  const Cuts& cuts() const { return at_.cuts; }
  Candidates& present() { return *present_; }

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
    if (present_->best()) recompute = present_->best()->recompute;
    auto found = anneal_orders(builder_, at_.cuts, recompute, effort * kTurns / actions, seed,
                               result_.candidates);
    if (!found) return;
    take(*found, result_);
    const Scored scored = score(*found, found->best_cuts());
    if (scored.score >= at_.score) return;
    at_ = scored, present_ = std::move(found);
    build(at_.cuts);
  }
  void move_under_order(std::size_t effort, std::uint64_t seed) {
    for (std::size_t round = 0; round < kRounds; ++round) {
      const std::size_t before = present_->evaluated();
      Scored moved = descend(*present_, at_, 400);
      if (round == 0) moved = descend(*present_, anneal(*present_, moved, effort, seed), 400);
      present_->offer(moved.cuts, present_->time(moved.cuts));
      take(*present_, result_);
      result_.candidates += present_->evaluated() - before;
      if (moved.score < at_.score) at_ = moved;
      if (!build(at_.cuts)) break;
    }
  }

  const OrderBuilder& builder_;
  BuiltPlan& result_;
  // The order whose cuts are moved: the fastest that fits, or else the one that lacks least.
  std::unique_ptr<Candidates> present_;
  Scored at_{{}, kInfinite};
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

std::vector<Cuts> starts_of(const CutModel& model, const Cuts& equal_time, std::size_t stages,
                            const std::vector<Partition>& starts) {
  std::vector<Cuts> found{equal_time};
  for (const Partition& partition : starts) {
    if (found.size() == kStarts) break;
    if (partition.stages() != stages) continue;
    const Cuts cuts = *model.cuts(partition);
    if (std::ranges::find(found, cuts) == found.end()) found.push_back(cuts);
  }
  return found;
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

BuiltPlan build_plan(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                     const std::vector<Partition>& starts, std::size_t effort, std::uint64_t seed,
                     std::size_t threads) {
  BuiltPlan result{.spec = spec, .plan = {}, .closest = {}, .impossible = "", .candidates = 0};
  const OrderBuilder builder(model, problem, spec, {.moves = 4 * effort, .rules = 16 + effort / 3});
  const auto equal_time = equal_time_cuts(problem.layers, builder.placement(), problem.cluster);
  if (!equal_time) {
    result.impossible =
        stream_all("the model has no ", spec.stages(), " stages: too few legal cuts");
    return result;
  }
  Run run(builder, result);
  for (const Cuts& cuts : starts_of(model, *model.cuts(*equal_time), spec.stages(), starts))
    run.build(cuts);
  if (!result.plan) run.build(roomy_cuts(run.present(), run.cuts()));
  const Cuts first = run.cuts();
  std::vector<BuiltPlan> others(kRestarts, BuiltPlan{result.spec, {}, {}, "", 0});
  parallel_for(kRestarts, threads, [&](std::size_t restart) {
    if (restart == 0) return run.move_cuts(effort, seed);
    Run again(builder, others[restart]);
    again.build(first);
    again.move_cuts(effort, seed + restart);
  });
  for (const BuiltPlan& other : others) {
    take(other.plan, other.closest, result);
    result.candidates += other.candidates;
  }
  if (!result.plan) {
    const OneMicrobatch one = one_microbatch(problem, spec);
    result.nothing_fits = one.nothing_fits;
    if (one.cuts) {
      const Cuts cuts = *model.cuts(*one.cuts);
      run.build(cuts);
      Candidates one_by_one(model, problem, spec, one_after_the_other(spec, builder.placement()));
      one_by_one.offer(cuts, one_by_one.time(cuts));
      take(one_by_one, result);
      result.candidates += one_by_one.evaluated();
    }
  }
  if (result.plan || problem.recompute != Recompute::Choose) return result;
  // The choice of stages has led to other cuts; those that fit without any may have been missed.
  Problem kept = problem;
  kept.recompute = Recompute::None;
  BuiltPlan without = build_plan(model, kept, spec, starts, effort, seed, threads);
  without.candidates += result.candidates;
  return without.plan ? without : result;
}

}  // namespace pfeife
