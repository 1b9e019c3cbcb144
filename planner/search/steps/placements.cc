#include "planner/search/steps/placements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "planner/ir/basics/parallel.h"
#include "planner/schedules/families.h"
#include "planner/search/cuts/cut_moves.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/orders/order_annealing.h"
#include "planner/search/price/numbers.h"

namespace pfeife {
namespace {

constexpr double kTooFull = Candidates::kTooFull;
constexpr const char* kFamily = "zb_greedy";
constexpr double kHottest = 1e-2;               ///< temperature at first, of the score
constexpr double kColdest = 1e-4;               ///< and in the end
constexpr std::size_t kStarts = 4;              ///< placements of plans to begin with
constexpr std::size_t kRuns = 2;                ///< of annealing, from each
constexpr std::size_t kBestOfRun = 2;           ///< placements
constexpr std::size_t kTurns = 30'000;          ///< that annealing decides, of effort 1
constexpr std::size_t kPolishedPlacements = 8;  ///< placements
constexpr std::size_t kEffortShare = 4;         ///< each of them takes such a part of the effort
constexpr std::size_t kMostStages = 6;          ///< a rank, in the mean

/// Stages on ranks, and the rule that makes the best order known for them.
struct Placed {
  Cuts cuts;
  ScheduleSpec spec;            // with its placement
  std::vector<bool> recompute;  // [stage]
  RuledOrder order = {0, kInfinite};
};

class PlacementAnnealing {
 public:
  PlacementAnnealing(const CutModel& model, const Problem& problem, std::uint64_t seed)
      : model_(model), problem_(problem), random_(seed) {}

  /// The placements that were best at some time, the best first.
  std::vector<Placed> run(Placed now, std::size_t turns) {
    std::vector<std::size_t> rules(order_rules(now.spec.stages(), now.spec.ranks));
    std::iota(rules.begin(), rules.end(), std::size_t{0});
    now.order = best_rule(model_of(now), rules, kInfinite);
    std::vector<Placed> found{now};
    const std::size_t tries = turns / (kParts * now.spec.stages() * now.spec.microbatches);
    for (std::size_t k = 0; k < tries; ++k) {
      const double done = static_cast<double>(k) / static_cast<double>(tries);
      const double score = now.order.score;
      const double scale = score < kTooFull ? score : score - kTooFull;
      const double temperature = scale * kHottest * std::pow(kColdest / kHottest, done);
      const double limit = score - temperature * std::log(std::max(random_.unit(), 1e-12));
      Placed next = now;
      if (!change(next)) continue;
      const std::size_t all = order_rules(next.spec.stages(), next.spec.ranks);
      next.order =
          best_rule(model_of(next), std::array{next.order.rule % all, random_.below(all)}, limit);
      if (next.order.score > limit) continue;
      now = std::move(next);
      if (now.order.score >= found.front().order.score) continue;
      std::erase_if(found, [&](const Placed& known) { return known.spec == now.spec; });
      found.insert(found.begin(), now);
    }
    return found;
  }

 private:
  /// False if nothing comes of the change that was tried.
  bool change(Placed& placed) {
    ScheduleSpec& spec = placed.spec;
    const ScheduleSpec before = spec;
    std::vector<RankId>& ranks = spec.rank_of_stage;
    const std::size_t stages = ranks.size(), stage = random_.below(stages);
    const auto next = static_cast<std::ptrdiff_t>(stage + 1);
    const std::ptrdiff_t either = next - static_cast<std::ptrdiff_t>(random_.below(2));
    const RankId any_rank{random_.below(spec.ranks)};
    enum : std::size_t { kSwap, kMove, kMoveToo, kSplit, kJoin };  // else cuts move
    switch (random_.below(problem_.cuts ? std::size_t{kSplit} : 8)) {
      case kSwap:
        std::swap(ranks[stage], ranks[random_.below(stages)]);
        break;
      case kMove:
      case kMoveToo:
        ranks[stage] = any_rank;
        break;
      case kSplit: {
        const std::int32_t first = placed.cuts[stage], room = placed.cuts[stage + 1] - first - 1;
        if (room < 1 || stages == kMostStages * spec.ranks) return false;
        const auto shift = static_cast<std::int32_t>(random_.below(at(room)));
        placed.cuts.insert(placed.cuts.begin() + next, first + 1 + shift);
        placed.recompute.insert(placed.recompute.begin() + next, placed.recompute[stage]);
        ranks.insert(ranks.begin() + either, any_rank);
        break;
      }
      case kJoin:
        if (stage + 1 == stages) return false;
        placed.cuts.erase(placed.cuts.begin() + next);
        placed.recompute.erase(placed.recompute.begin() + either);
        ranks.erase(ranks.begin() + either);
        break;
      default: {
        const Cuts cuts = placed.cuts;
        if (stages < 2) return false;
        placed.cuts =
            CutMoves(model_, placement_for(spec, problem_.device_of_rank)).random(cuts, random_);
        return placed.cuts != cuts;
      }
    }
    spec.stages_per_rank = ranks.size() / spec.ranks;
    return spec != before && !refusal(spec);
  }

  OrderModel model_of(const Placed& placed) {
    const OrderBuilder builder(model_, problem_, placed.spec, {}, memo_);
    const StageCosts costs = builder.costs(placed.cuts, {placed.recompute});
    return OrderModel(costs, builder.placement(), placed.spec.microbatches, builder.rooms(costs));
  }

  const CutModel& model_;
  const Problem& problem_;
  OrderMemo memo_;
  Random random_;
};

/// Placements of the plans, the fastest first, each once.
std::vector<Placed> starts(const CutModel& model, const std::vector<Priced>& plans) {
  std::vector<Placed> found;
  for (const Priced& plan : plans) {
    ScheduleSpec spec{.family = kFamily,
                      .ranks = plan.spec.ranks,
                      .microbatches = plan.spec.microbatches,
                      .stages_per_rank = plan.spec.stages_per_rank,
                      .rank_of_stage = plan.placement.rank_of_stage};
    const std::optional<Cuts> cuts = model.cuts(plan.partition);
    if (!cuts || plan.spec.slices > 1 ||
        std::ranges::find(found, spec, &Placed::spec) != found.end())
      continue;
    std::vector<bool> recompute = plan.activations.stages;
    recompute.resize(spec.stages());
    found.push_back({*cuts, std::move(spec), std::move(recompute)});
    if (found.size() == kStarts) break;
  }
  return found;
}

/// The listed schedule that has its stages there, if there is one.
ScheduleSpec listed_or_own(const Problem& problem, const ScheduleSpec& own) {
  for (const ScheduleSpec& spec : problem.schedules)
    if (is_built(spec) && spec.slices == 1 &&
        placement_for(spec).rank_of_stage == own.rank_of_stage)
      return spec;
  return own;
}

/// Cuts and order searched for the placement.
std::optional<Priced> polished(const CutModel& model, const Problem& problem, const Placed& placed,
                               const SearchOptions& options, const SearchFunction& search) {
  const ScheduleSpec spec = listed_or_own(problem, placed.spec);
  if (!problem.cuts) {
    BuiltSearch built(model, problem, spec, search);
    built.work({model.partition(placed.cuts)},
               std::max<std::size_t>(1, options.effort() / kEffortShare), options.seed);
    return built.result().plan;
  }
  const auto built = build_on_cuts(model, problem, spec, placed.cuts);
  std::optional<Priced> plan = built->best();
  if (plan) plan->order = built->schedule();
  return plan;
}

}  // namespace

void add_placed_plans(const Problem& problem, const SearchOptions& options,
                      const SearchFunction& search, Pool& pool) {
  const std::vector<Priced>& plans = pool.answer().plans;
  if (plans.empty() || problem.device_of_rank.size() < 2 ||
      std::ranges::find(problem.schedules, kFamily, &ScheduleSpec::family) ==
          problem.schedules.end())
    return;
  const CutModel model(problem.layers, problem.cluster, problem.memory_rule,
                       problem.recomputes_all(), problem.norm);
  const std::vector<Placed> from = starts(model, plans);
  std::vector<std::vector<Placed>> of_runs(kRuns * from.size());
  parallel_for(of_runs.size(), options.threads, [&](std::size_t run) {
    of_runs[run] = PlacementAnnealing(model, problem, options.seed + run)
                       .run(from[run / kRuns], options.effort() * kTurns / of_runs.size());
  });
  std::vector<Placed> best;
  for (const std::vector<Placed>& found : of_runs)
    for (const Placed& placed : std::span(found).first(std::min(kBestOfRun, found.size())))
      if (std::ranges::find(best, placed.spec, &Placed::spec) == best.end()) best.push_back(placed);
  std::ranges::stable_sort(best, {}, [](const Placed& placed) { return placed.order.score; });
  best.resize(std::min(best.size(), kPolishedPlacements));
  std::vector<std::optional<Priced>> found(best.size());
  parallel_for(best.size(), options.threads, [&](std::size_t i) {
    found[i] = polished(model, problem, best[i], options, search);
  });
  const Nanoseconds fastest = std::ranges::min(plans, {}, &Priced::estimate).estimate;
  std::vector<Priced> faster;
  for (std::optional<Priced>& plan : found)
    if (plan && plan->estimate < fastest) faster.push_back(*std::move(plan));
  std::ranges::stable_sort(faster, {}, &Priced::estimate);
  pool.add(std::move(faster));
}

}  // namespace pfeife
