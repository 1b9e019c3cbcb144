#include "planner/search/built_orders.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "planner/cost/evaluate.h"
#include "planner/cost/stage_costs.h"
#include "planner/ir/error.h"
#include "planner/schedules/families.h"
#include "planner/schedules/zb_greedy.h"
#include "planner/search/local_search.h"
#include "planner/search/parallel.h"
#include "planner/search/start_cuts.h"

namespace pfeife {
namespace {

constexpr std::size_t kFits = 4;      ///< builds at most until the order fits into the memory
constexpr std::size_t kStarts = 3;    ///< cuts that orders are built for at first
constexpr std::size_t kRounds = 3;    ///< of moving the cuts and building again
constexpr std::size_t kRestarts = 3;  ///< of annealing, which begins at the same order and cuts
constexpr std::size_t kMovesOnCuts = 1000;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Builds orders for cuts. Learns what the exact memory rule counts besides what F and I leave
/// behind: parameters, buffers, temporaries.
class OrderBuilder {
 public:
  OrderBuilder(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
               std::size_t moves)
      : model_(model), problem_(problem), spec_(spec), placement_(placement_for(spec)) {
    placement_.device_of_rank = problem.device_of_rank;
    options_.moves = moves;
    options_.rules = 16 + moves / 3;
  }
  const Placement& placement() const { return placement_; }

  /// An order for the cuts, with the cuts offered to it: best() if it fits. Never null. Where
  /// stages may be recomputed, orders for none, for those of ranks that are too full, and for all
  /// of them recomputed; what the cuts then recompute under the order is Candidates' choice.
  std::unique_ptr<Candidates> build(const Cuts& cuts) const {
    const std::size_t stages = placement_.stages();
    std::vector<bool> recompute(stages, problem_.recompute == Recompute::Full);
    std::vector<bool> full(stages, false);  // stages of ranks that have been too full
    auto best = build_for(cuts, recompute, full);
    if (problem_.recompute != Recompute::Choose) return best;
    std::vector<std::vector<bool>> others{full, std::vector<bool>(stages, true)};
    if (full == recompute || full == others[1]) others.erase(others.begin());
    for (const std::vector<bool>& other : others)
      if (auto built = build_for(cuts, other, full); better(*built, *best)) best = std::move(built);
    return best;
  }

 private:
  static bool better(const Candidates& a, const Candidates& b) {
    if (a.best() || b.best()) return a.best_time() < b.best_time();
    const auto lack = [](const Candidates& c) {
      return c.closest()->needed - c.closest()->available;
    };
    return lack(a) < lack(b);
  }

  /// The order for stages that are recomputed or not, and which ranks that makes too full.
  std::unique_ptr<Candidates> build_for(const Cuts& cuts, const std::vector<bool>& recompute,
                                        std::vector<bool>& full) const {
    const Partition partition = model_.partition(cuts);
    const StageCosts costs =
        stage_costs(model_.layers(), partition, placement_, model_.cluster(), recompute);
    std::vector<Bytes> room = rooms(costs);
    for (std::size_t attempt = 1;; ++attempt) {
      Schedule order = schedule_of(
          zero_bubble_order(costs, placement_, spec_.microbatches, room, options_).order);
      auto candidates = std::make_unique<Candidates>(model_, problem_, spec_, order);
      candidates->offer(cuts, candidates->time(cuts));
      const bool done = candidates->best() && problem_.recompute != Recompute::Choose;
      if (done || attempt == kFits) return candidates;
      const EvaluatedPlan plan = evaluate(model_.layers(), model_.cluster(), order, placement_,
                                          partition, problem_.memory_rule, recompute);
      bool fits = true;
      for (std::size_t r = 0; r < room.size(); ++r) {
        const Bytes over = plan.peak_memory[r] - problem_.memory_limit[r];
        room[r] = std::min(room[r], room[r] - over);
        if (over <= Bytes{0}) continue;
        fits = false;
        for (std::size_t s = 0; s < full.size(); ++s)
          if (placement_.rank_of_stage[s].index() == r) full[s] = true;
      }
      if (fits) return candidates;
    }
  }

  std::vector<Bytes> rooms(const StageCosts& costs) const {
    std::vector<Bytes> room = problem_.memory_limit, temporary(room.size());
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
      const std::size_t r = placement_.rank_of_stage[s].index();
      room[r] -= costs.stages[s].fixed();
      temporary[r] = std::max(temporary[r], costs.stages[s].temporary.largest());
    }
    for (std::size_t r = 0; r < room.size(); ++r) room[r] -= temporary[r];
    return room;
  }

  const CutModel& model_;
  const Problem& problem_;
  const ScheduleSpec& spec_;
  Placement placement_;
  ZeroBubbleOptions options_;
};

/// Takes a plan if it is the best so far, and the least bad failure.
void take(const std::optional<PlannedSchedule>& plan, const std::optional<Infeasible>& lack,
          BuiltPlan& result) {
  if (lack && (!result.closest ||
               lack->needed - lack->available < result.closest->needed - result.closest->available))
    result.closest = lack;
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

  void move_cuts(std::size_t effort, std::uint64_t seed) {
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

 private:
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

}  // namespace

bool is_built(const ScheduleSpec& spec) { return family(spec.family).built_for_costs; }

std::unique_ptr<Candidates> build_on_cuts(const CutModel& model, const Problem& problem,
                                          const ScheduleSpec& spec, const Cuts& cuts) {
  return OrderBuilder(model, problem, spec, kMovesOnCuts).build(cuts);
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
                    {{spec.loops == 1 ? "zb_h1" : "zb1p", spec.ranks, 1, spec.loops, {}, {}}},
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
  const OrderBuilder builder(model, problem, spec, effort);
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
