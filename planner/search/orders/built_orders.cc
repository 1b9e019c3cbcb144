#include "planner/search/orders/built_orders.h"

#include <algorithm>
#include <memory>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/parallel.h"
#include "planner/schedules/families.h"
#include "planner/search/cuts/cut_moves.h"
#include "planner/search/cuts/local_search.h"
#include "planner/search/cuts/start_cuts.h"
#include "planner/search/orders/order_annealing.h"
#include "planner/search/price/lack.h"
#include "planner/search/price/pareto.h"

namespace pfeife {
namespace {

constexpr std::size_t kStarts = 3;  ///< cuts that orders are built for at first
constexpr std::size_t kRounds = 3;  ///< of moving the cuts and building again
constexpr std::size_t kMovesOnCuts = 1000;
constexpr std::size_t kEffortOnCuts = 30;
constexpr std::size_t kEffortATry = 8;    ///< cuts beside the best that get an order of their own
constexpr std::size_t kMoves = 4;         ///< OrderBuilder, of all effort so far
constexpr std::size_t kRules = 16;        ///< of the grid at least
constexpr std::size_t kTurns = 7000;      ///< that annealing with new orders decides, of effort 1
constexpr std::size_t kMoved = 10000;     ///< actions of orders whose memory is exact, of effort 1
constexpr int kAttempts = 3;              ///< with less memory, where what is reserved does not fit
constexpr std::size_t kPlayed = 4;        ///< plans of one call
constexpr std::int64_t kLackSteps = 256;  ///< the least lack is known to such a part

/// Takes a plan if it is the best so far, or smaller than those that are as fast, and the least bad
/// failure.
void keep_better(const std::optional<Priced>& plan, const std::optional<Infeasible>& lack,
                 BuiltPlan& result) {
  note_closest(lack, result.closest);
  if (!plan) return;
  if (!result.plan || plan->estimate < result.plan->estimate) result.plan = plan;
  result.front.push_back(*plan);
  result.front = pareto_front(std::move(result.front), result.memory_limit);
}
void keep_better(const Candidates& candidates, BuiltPlan& result) {
  std::optional<Priced> plan = candidates.best();
  if (plan) plan->order = candidates.schedule();
  keep_better(plan, candidates.closest(), result);
  for (Priced near : candidates.front()) {
    near.order = plan->order;
    keep_better(near, {}, result);
  }
}

/// Every microbatch's forward and backward before the next one's: no order needs less memory.
Schedule one_after_the_other(const ScheduleSpec& spec, const Placement& placement) {
  Schedule schedule;
  schedule.rows.resize(spec.ranks);
  for (std::size_t m = 0; m < spec.microbatches; ++m)
    for (const Op op : {Op::Forward, Op::Backward})
      for (std::size_t k = 0; k < placement.stages(); ++k) {
        const std::size_t s = op == Op::Forward ? k : placement.stages() - 1 - k;
        const StageId stage{s};
        const MicrobatchId microbatch{m};
        schedule.rows[placement.rank_of_stage[s].index()].emplace_back(
            op == Op::Forward ? forward(stage, microbatch) : backward(stage, microbatch));
      }
  return schedule;
}

std::unique_ptr<Candidates> one_by_one(const OrderBuilder& builder, const Cuts& cuts) {
  return builder.judged(cuts, one_after_the_other(builder.spec(), builder.placement()));
}

std::size_t actions(const ScheduleSpec& spec) { return kParts * spec.stages() * spec.microbatches; }
std::size_t exact_moves(const ScheduleSpec& spec, std::size_t effort) {
  return effort * kMoved / actions(spec);
}

/// Builds an order, moves the cuts under it, builds again, and so on.
class Run {
 public:
  /// Goes on from `present`; writes what it finds to `result`.
  Run(const OrderBuilder& builder, std::size_t effort, std::uint64_t seed, OrderedCuts present,
      BuiltPlan& result)
      : builder_(builder),
        effort_(effort),
        seed_(seed),
        result_(result),
        present_(std::move(present)) {}

  /// An order for the cuts becomes the present one if it is better. False if it is not.
  bool build(const Cuts& cuts) {
    std::unique_ptr<Candidates> built = builder_.build(cuts);
    const bool fits = built->best() || (present_.order && present_.order->best());
    if (!fits) {
      auto other = from_one_by_one(cuts);
      keep_better(*other, result_);
      if (other->best()) built = std::move(other);
    }
    keep_better(*built, result_);
    const Scored scored = score(*built, cuts);
    result_.candidates += built->evaluated();
    if (scored.score >= present_.at.score) return false;
    present_ = {std::move(built), scored};
    return true;
  }
  const Cuts& cuts() const { return present_.at.cuts; }
  /// After build().
  Candidates& order() {
    PFEIFE_CHECK(present_.order != nullptr, "the first order is better than none");
    return *present_.order;
  }
  OrderedCuts found() && { return std::move(present_); }

  /// Moves the cuts with new orders for each, then the best of them for the order it has.
  void move_cuts() {
    anneal_order();
    move_under_order();
    improve_order();
    try_neighbours();
  }

 private:
  void anneal_order() {
    std::vector<bool> recompute(builder_.spec().stages(),
                                builder_.problem().recompute != Recompute::None);
    if (order().best()) recompute = order().best()->activations.stages;
    auto found =
        anneal_orders(builder_, cuts(), recompute, effort_ * kTurns / actions(builder_.spec()),
                      seed_, result_.candidates);
    if (take_if_better(std::move(found))) build(cuts());
  }
  void improve_order() { take_if_better(improved(order(), effort_)); }
  /// Other cuts, each with an order of its own.
  void try_neighbours() {
    Random random(seed_);
    const CutMoves moves(builder_.model(), builder_.placement());
    if (cuts().size() < 3) return;
    for (std::size_t k = 0; k < effort_ / kEffortATry; ++k) {
      const Cuts next = moves.random(cuts(), random);
      if (next == cuts()) continue;
      std::unique_ptr<Candidates> built = builder_.build(next);
      result_.candidates += built->evaluated();
      if (!built->best()) built = one_by_one(builder_, next);
      take_if_better(improved(*built, 1));
    }
  }
  std::unique_ptr<Candidates> improved(const Candidates& order, std::size_t effort) {
    const std::size_t moves = exact_moves(builder_.spec(), effort);
    result_.candidates += moves;
    return builder_.improved(order, moves, seed_);
  }
  std::unique_ptr<Candidates> from_one_by_one(const Cuts& cuts) {
    auto slow = one_by_one(builder_, cuts);
    auto better = improved(*slow, effort_);
    return better ? std::move(better) : std::move(slow);
  }
  /// What its best cuts are worth under an order; null is not better. False if it is not.
  bool take_if_better(std::unique_ptr<Candidates> found) {
    if (!found) return false;
    keep_better(*found, result_);
    if (!found->best()) return false;
    const Scored scored = score(*found, found->best_cuts());
    if (scored.score >= present_.at.score) return false;
    present_ = {std::move(found), scored};
    return true;
  }
  void move_under_order() {
    for (std::size_t round = 0; round < kRounds; ++round) {
      const std::size_t before = order().evaluated();
      Scored moved = descend(order(), present_.at, 400);
      if (round == 0) moved = descend(order(), anneal(order(), moved, 4 * effort_, seed_), 400);
      order().offer(moved.cuts, order().time(moved.cuts));
      keep_better(order(), result_);
      result_.candidates += order().evaluated() - before;
      if (moved.score < present_.at.score) present_.at = moved;
      if (!build(cuts())) break;
    }
  }

  const OrderBuilder& builder_;
  std::size_t effort_;
  std::uint64_t seed_;
  BuiltPlan& result_;
  OrderedCuts present_;  // whose cuts are moved
};

/// One microbatch on the placement of `spec`.
ScheduleSpec one_in_closed_form(const ScheduleSpec& spec) {
  const auto placement = placement_for(spec).rank_of_stage;
  ScheduleSpec closed_form{"zb1p", spec.ranks, 1, spec.stages_per_rank, {}, {}};
  for (const char* name : {"zb_h1", "zbv", "zb1p"}) {
    closed_form.family = name;
    if (!refusal(closed_form) && placement_for(closed_form).rank_of_stage == placement) break;
  }
  return closed_form;
}

/// What the backward passes of a single microbatch hold.
enum class Backwards {
  Least,  ///< no more than any order of several: a rank may do B or I and W, whatever needs less
  Whole   ///< as much as B
};

/// A single microbatch on the placement of a schedule.
class SingleMicrobatch {
 public:
  /// Keeps a reference to `problem`.
  SingleMicrobatch(const Problem& problem, const ScheduleSpec& spec, Backwards backwards)
      : problem_(problem), spec_(one_in_closed_form(spec)), layers_(problem.layers) {
    // Nothing is kept from I to W, and neither rises higher than B.
    for (Layer& layer : layers_.layers) {
      PassBytes& temporary = layer.temporary;
      temporary.input = backwards == Backwards::Whole
                            ? temporary.backward
                            : std::min(temporary.input, temporary.backward);
      temporary.weight = std::min(temporary.weight, temporary.backward);
      layer.weight_saved = Bytes{0};
    }
    for (LayerStorage& storage : layers_.storages) storage.weight_savers.clear();
  }
  /// Where every rank has `more` than its limit.
  Answer search_with(Bytes more, std::size_t effort, const SearchFunction& search) const {
    Problem relaxed = with_layers(problem_, layers_);
    relaxed.allocator.reset();  // not of these layers
    relaxed.schedules = {spec_};
    for (Bytes& limit : relaxed.memory_limit) limit += more;
    return search(relaxed, {.keep = 1, .iterations = effort});
  }

 private:
  const Problem& problem_;
  ScheduleSpec spec_;
  Layers layers_;
};

}  // namespace

void add(const BuiltPlan& other, BuiltPlan& result) {
  keep_better(other.plan, other.closest, result);
  for (const Priced& plan : other.front) keep_better(plan, {}, result);
  result.nothing_fits = result.nothing_fits || other.nothing_fits;
  result.candidates += other.candidates;
}

void add(const Priced& plan, BuiltPlan& result) { keep_better(plan, {}, result); }

bool is_built(const ScheduleSpec& spec) { return family(spec.family).built_for_costs; }

std::unique_ptr<Candidates> build_on_cuts(const CutModel& model, const Problem& problem,
                                          const ScheduleSpec& spec, const Cuts& cuts) {
  OrderMemo memo;
  const OrderBuilder builder(model, problem, spec, {.moves = kMovesOnCuts}, memo);
  auto built = builder.build(cuts);
  if (!built->best())
    if (auto slow = one_by_one(builder, cuts); slow->best()) built = std::move(slow);
  auto better = builder.improved(*built, exact_moves(spec, kEffortOnCuts), 0);
  return better && better->best_time() < built->best_time() ? std::move(better) : std::move(built);
}

OneMicrobatch one_microbatch(const Problem& problem, const ScheduleSpec& spec,
                             const SearchFunction& search) {
  const Answer outcome =
      SingleMicrobatch(problem, spec, Backwards::Least).search_with(Bytes{0}, 30, search);
  if (!outcome.plans.empty()) return {outcome.plans[0].partition, false};
  return {{}, !outcome.infeasible || outcome.infeasible->proven};
}

std::optional<Partition> least_lacking_cuts(const Problem& problem, const ScheduleSpec& spec,
                                            const SearchFunction& search) {
  const SingleMicrobatch single(problem, spec, Backwards::Whole);
  const std::optional<Infeasible> lack = single.search_with(Bytes{0}, 1, search).infeasible;
  if (!lack) return std::nullopt;
  Partition best = lack->partition;
  Bytes none{0}, enough = lack->lacking();  // more for every rank
  while ((enough - none).value > 1 + enough.value / kLackSteps) {
    const Bytes more{(none + enough).value / 2};
    const Answer outcome = single.search_with(more, 1, search);
    if (outcome.plans.empty())
      none = more;
    else
      best = outcome.plans[0].partition, enough = more;
  }
  return best;
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
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::optional<Priced> before = result_.plan;
    work_once(starts, effort, seed);
    if (keep_what_fits(before) || result_.plan) break;
  }
}

/// On every rank.
void BuiltSearch::leave(Bytes free) {
  for (std::size_t r = 0; r < allocated_.memory_limit.size(); ++r)
    allocated_.memory_limit[r] =
        std::min(allocated_.memory_limit[r], problem_.memory_limit[r] - free);
}

/// Plays what is faster than before: the fastest that fits stays. False if one does not fit; then
/// less memory is left for the next ones, which begin anew.
bool BuiltSearch::keep_what_fits(const std::optional<Priced>& before) {
  const auto faster = [&](const Priced& plan) {
    return !before || plan.estimate < before->estimate;
  };
  if (!problem_.allocator || !result_.plan || !faster(*result_.plan)) return true;
  std::vector<Priced> plans;
  std::ranges::copy_if(result_.front, std::back_inserter(plans), faster);
  std::ranges::stable_sort(plans, {}, &Priced::estimate);
  result_.plan = before;
  std::size_t played = 0;
  for (const Priced& plan : plans) {
    const std::vector<Bytes> needed = must_fit(problem_, plan);
    if (++played; fits(needed, problem_.memory_limit)) {
      result_.plan = plan;
      break;
    }
    for (std::size_t r = 0; r < needed.size(); ++r)
      if (const Bytes limit = problem_.memory_limit[r]; needed[r] > limit) {
        leave(needed[r] - plan.peak_memory[r]);
        note_closest(Infeasible{RankId{r}, needed[r], limit, result_.spec, plan.partition},
                     result_.closest);
      }
    if (played == kPlayed) break;
  }
  const bool fit = result_.plan == (plans.empty() ? before : plans.front());
  std::erase_if(result_.front, [&](const Priced& plan) {
    return !result_.plan || plan.estimate < result_.plan->estimate;
  });
  if (!fit) best_ = {}, first_.clear(), started_.clear();
  return fit;
}

void BuiltSearch::work_once(const std::vector<Partition>& starts, std::size_t effort,
                            std::uint64_t seed) {
  worked_ += effort;
  const OrderBuilder builder(model_, allocated_, result_.spec,
                             {.moves = kMoves * worked_, .rules = kRules + worked_ / 3}, *memo_);
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
  Run run(builder, effort, seed, std::move(best_), result_);
  if (!started_.empty()) run.build(run.cuts());  // with more rules and moves than before
  for (const Cuts& cuts : new_starts(first)) run.build(cuts);
  if (!result_.plan) run.build(roomy_cuts(run.order(), run.cuts()));
  if (first_.empty()) first_ = run.cuts();
  const bool anew = calls_++ % 2 == 1;
  if (!anew) run.move_cuts();
  best_ = std::move(run).found();
  if (anew) begin_anew(builder, effort, seed);
  if (!result_.plan) try_one_by_one(builder, effort, seed);
  if (!result_.plan && is_chosen(problem_.recompute))
    work_without_recomputation(starts, effort, seed);
}

/// Every other call, so that what the first ones found is not all there is to find.
void BuiltSearch::begin_anew(const OrderBuilder& builder, std::size_t effort, std::uint64_t seed) {
  Run run(builder, effort, seed, {}, result_);
  run.build(first_);
  run.move_cuts();
  OrderedCuts found = std::move(run).found();
  if (found.at.score < best_.at.score) best_ = std::move(found);
}

/// No order needs less memory than one microbatch after the other.
void BuiltSearch::try_one_by_one(const OrderBuilder& builder, std::size_t effort,
                                 std::uint64_t seed) {
  if (tried_one_by_one_ || !result_.spec.rank_of_stage.empty()) return;  // no family has it
  tried_one_by_one_ = true;
  const OneMicrobatch single_microbatch = one_microbatch(problem_, result_.spec, search_);
  result_.nothing_fits = single_microbatch.nothing_fits;
  if (!single_microbatch.cuts) {
    if (const auto cuts = least_lacking_cuts(problem_, result_.spec, search_))
      keep_better(*one_by_one(builder, *model_.cuts(*cuts)), result_);
    return;
  }
  const Cuts cuts = *model_.cuts(*single_microbatch.cuts);
  Run run(builder, effort, seed, std::move(best_), result_);
  run.build(cuts);
  run.move_cuts();
  best_ = std::move(run).found();
}

/// The choice of stages may have led to other cuts; those that fit without any may have been
/// missed.
void BuiltSearch::work_without_recomputation(const std::vector<Partition>& starts,
                                             std::size_t effort, std::uint64_t seed) {
  if (!without_) {
    kept_ = std::make_unique<Problem>(problem_);
    kept_->recompute = Recompute::None, kept_->recompute_except_last = false;
    without_ = std::make_unique<BuiltSearch>(model_, *kept_, result_.spec, search_);
  }
  const std::size_t before = without_->result().candidates;
  without_->work(starts, effort, seed);
  keep_better(without_->result().plan, without_->result().closest, result_);
  for (const Priced& plan : without_->result().front) keep_better(plan, {}, result_);
  result_.candidates += without_->result().candidates - before;
}

}  // namespace pfeife
