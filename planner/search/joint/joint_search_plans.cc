// The steps of the joint search that find plans.
#include <functional>
#include <map>
#include <mutex>
#include <numeric>

#include "planner/ir/basics/error.h"
#include "planner/schedules/families.h"
#include "planner/search/bound/segment_bound.h"
#include "planner/search/bound/stage_bound.h"
#include "planner/search/cuts/start_cuts.h"
#include "planner/search/joint/joint_search.h"
#include "planner/search/orders/every_order.h"
#include "planner/search/price/numbers.h"

namespace pfeife {
namespace {
constexpr std::size_t kPolishedFirst = 4;   ///< schedules that make the first upper bound
constexpr std::size_t kAnnealed = 8;        ///< schedules annealed of each number of stages a rank
constexpr std::size_t kAnnealing = 3;       ///< batches, of effort 1
constexpr std::size_t kLonger = 8;          ///< more for the two best of all
constexpr std::size_t kAnnealedLonger = 2;  ///< if they are close to the best, and memory binds
constexpr std::size_t kMostRuns = 64;       ///< seeds apart
constexpr double kClose = 1.05;             ///< times the best
constexpr double kRoom = 0.1;               ///< of the limit; with more on all ranks none binds
constexpr std::size_t kShared = 16;         ///< cuts of other schedules that one tries
constexpr double kJudging = 5e8;            ///< ns for the simple cuts of all schedules
constexpr double kDescentsMore = 5e5;       ///< ns for those that follow, per effort
constexpr double kDescents = 1.5e9;         ///< ns for descents on all schedules

/// FNV-1a of the family's name and of the numbers of a schedule: each has its own, so that a
/// schedule's annealing does not depend on what else is listed. Names and separators stand here as
/// when the published plans were found, whatever people are shown.
std::uint64_t seed_of(const ScheduleSpec& spec) {
  std::uint64_t seed = 1469598103934665603ULL;
  const auto add = [&](const std::string& text) {
    for (const char letter : text)
      seed = (seed ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
  };
  add(stream_all(spec.family, ' ', spec.ranks, ' ', spec.microbatches, ' ', spec.stages_per_rank,
                 ' '));
  if (spec.loop_batch) add(stream_all("loop_batch=", *spec.loop_batch));
  if (spec.loop_batch && !spec.prefetch.empty()) add(";");
  for (std::size_t r = 0; r < spec.prefetch.size(); ++r)
    add(stream_all(r == 0 ? "prefetch=" : ",", spec.prefetch[r]));
  add("\n");
  return seed;
}

}  // namespace

void JointSearch::place_start() {
  contenders_.resize(problem_.schedules.size());
  std::map<std::vector<RankId>, std::vector<Cuts>> simple;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    const ScheduleSpec& spec = problem_.schedules[i];
    const Placement placement = placement_for(spec, problem_.device_of_rank);
    contenders_[i].number = i;
    const auto [at, added] = simple.try_emplace(placement.rank_of_stage);
    if (added) at->second = simple_cuts(model_, placement);
    contenders_[i].simple = at->second;
    if (at->second.empty())
      contenders_[i].impossible =
          stream_all("the model has no ", spec.stages(), " stages: too few legal cuts");
  }
  visit(ranked([](const Contender&) { return 0; }), [&](Contender& c) {
    const ScheduleSpec& spec = problem_.schedules[c.number];
    c.candidates = std::make_unique<Candidates>(model_, problem_, spec);
    c.floor = segment_bound(model_, problem_, c.candidates->schedule());
    if (spec.stages_per_rank == 1)
      c.simple.push_back(stage_cuts(model_, c.candidates->costs(), c.candidates->schedule()));
    c.start.score = kInfinite;
    std::vector<double> times;
    std::vector<char> exact;
    c.candidates->search_times(c.simple, times, exact);
    for (std::size_t k = 0; k < c.simple.size(); ++k)
      if (const double worth = c.candidates->weigh(c.simple[k], times[k]);
          c.start.cuts.empty() || worth < c.start.score)
        c.start = {c.simple[k], worth};
  });
  visit_within(kJudging, ranked([](const Contender& c) { return c.start.score; }),
               [](Contender& c) {
                 if (c.start.score < Candidates::kTooFull) c.offer(c.start.cuts);
                 for (const Cuts& cuts : c.simple)
                   if (&cuts == &c.simple.front() || !c.candidates->surely_too_full(cuts))
                     c.offer(cuts);
               });
  find_first();
}

/// Where no simple cuts fit: a plan to compare with, from cuts that leave room.
void JointSearch::find_first() {
  const std::vector<std::size_t> order = ranked([](const Contender& c) { return c.start.score; });
  for (std::size_t k = 0; k < order.size() && best_time() == kInfinite; k += kSideBySide)
    visit({order.begin() + static_cast<std::ptrdiff_t>(k),
           order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), k + kSideBySide))},
          [](Contender& c) { c.make_room(); });
}

void JointSearch::polish_first() {
  std::vector<std::size_t> order = ranked([](const Contender& c) { return c.start.score; });
  order.resize(std::min(order.size(), kPolishedFirst));
  visit(order, [](Contender& c) { c.descend_and_offer(c.start.cuts); });
}

/// From the start of every schedule, or what its proof came near to.
void JointSearch::descend_all() {
  visit_within(kDescents, ranked([](const Contender& c) { return c.bound(); }),
               [&, target = best_time()](Contender& c) {
                 if (!may_beat(c, target)) return;
                 c.make_room();
                 c.descend_from_nearest();
               });
  share_cuts();
}

/// False: no cuts of it are faster. Bounds it first if nobody has: that takes less time than what
/// is then saved of schedules that are out.
bool JointSearch::may_beat(Contender& c, double target) {
  if (!c.proof && c.candidates->stages() <= Relaxation::kFewStages) bound(c, target);
  return c.open() && c.bound() < target;
}

/// The same of those that have a proof by now.
void JointSearch::descend_more() {
  std::vector<std::size_t> order = ranked([](const Contender& c) { return c.bound(); });
  std::erase_if(order, [&](std::size_t i) {
    const Contender& c = contenders_[i];
    return c.tried_nearest_cuts || !c.proof || c.proof->nearest().empty();
  });
  visit_within(static_cast<double>(span_) * kDescentsMore, order,
               [](Contender& c) { c.descend_from_nearest(); });
}

void JointSearch::anneal_best() {
  // The best of each number of stages a rank, so that more to choose from leave those there were
  // their part.
  std::map<std::size_t, std::size_t> annealed;
  std::vector<std::size_t> order = ranked([](const Contender& c) {
    return std::pair{c.start.score, c.bound()};
  });
  std::erase_if(order, [&](std::size_t i) {
    return annealed[problem_.schedules[i].stages_per_rank]++ >= kAnnealed;
  });
  const auto anneal_runs = [&](Contender& c, std::size_t per_effort, std::size_t first) {
    for (AnnealingRun run : annealing_runs(per_effort * begun_, per_effort * (begun_ + span_))) {
      run.number += first;
      anneal_run(c, run);
    }
  };
  visit_within(kDescents, order, [&, target = best_time()](Contender& c) {
    if (may_beat(c, target)) anneal_runs(c, kAnnealing, 0);
  });
  share_cuts();
  order = ranked([](const Contender& c) { return c.candidates->best_time(); });
  order.resize(std::min(order.size(), kAnnealedLonger));
  // Where there is room, cuts that fit lie side by side, and the first runs find the way.
  const double room = kRoom * static_cast<double>(std::ranges::max(problem_.memory_limit).value);
  std::erase_if(order, [&, best = best_time()](std::size_t i) {
    Candidates& candidates = *contenders_[i].candidates;
    if (!candidates.best()) return best < kInfinite;
    return candidates.best_time() > kClose * best ||
           candidates.excess(candidates.best_cuts()) < -room;
  });
  visit(order, [&](Contender& c) { anneal_runs(c, kLonger, kMostRuns); });
  share_cuts();
}

/// What is found is judged at once, so that the next run knows what the exact memory rule refuses.
void JointSearch::anneal_run(Contender& c, AnnealingRun run) {
  const std::uint64_t seed =
      seed_of(problem_.schedules[c.number]) + options_.seed * 1000003 + run.number;
  const Scored found = anneal(*c.candidates, c.start, run.batches, seed);
  if (found.score >= c.start.score) return;
  c.offer(found.cuts);
  c.descend_and_offer(found.cuts);
}

/// The best cuts of every schedule are tried with the others of as many stages: schedules that
/// differ little have much the same best cuts, but not each finds them.
void JointSearch::share_cuts() {
  std::map<std::size_t, std::vector<Cuts>> good;
  for (const std::size_t i : by_time())
    if (auto& shared = good[contenders_[i].candidates->stages()]; shared.size() < kShared)
      shared.push_back(contenders_[i].candidates->best_cuts());
  visit_within(kDescents, ranked([](const Contender& c) { return c.bound(); }), [&](Contender& c) {
    const auto shared = good.find(c.candidates->stages());
    if (shared == good.end()) return;
    std::vector<double> times;
    std::vector<char> exact;
    c.candidates->search_times(shared->second, times, exact);
    Scored best = c.start;
    for (std::size_t k = 0; k < times.size(); ++k)
      if (times[k] < best.score)
        if (const Scored found = score(*c.candidates, shared->second[k]); found.score < best.score)
          best = found;
    if (best.score < c.start.score) c.descend_and_offer(best.cuts);
  });
}

/// Each twice: as if the schedule were the only one, so that more schedules to choose from never
/// make a slower plan of it, and from the best cuts of the others.
void JointSearch::build_orders() {
  std::vector<Partition> starts;
  for (const std::size_t i : by_time())
    starts.push_back(contenders_[i].candidates->best()->partition);
  const std::uint64_t seed = options_.seed + 10 * begun_;
  std::vector<char> worth(built_.size());
  for (std::size_t i = 0; i < worth.size(); ++i) worth[i] = begun_ == 0 || may_build_faster(i);
  const auto from = [&](std::size_t i) {
    return std::ranges::find(starts, to_build_[i].stages(), &Partition::stages) != starts.end();
  };
  // The longest first, so that no thread is left with one when the others are done.
  std::vector<std::size_t> order(built_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t i) { return to_build_[i].stages(); });
  std::mutex mutex;
  std::size_t built = 0;  // tasks
  parallel_for(2 * built_.size(), options_.threads, [&](std::size_t task) {
    const std::size_t i = order[task % order.size()];
    if (!worth[i]) return;
    if (task < order.size())  // first: the others find its orders in the memo
      by_itself_[i].work({}, span_, seed);
    else if (from(i))
      from_others_[i].work(starts, span_, seed);
    const std::lock_guard lock(mutex);
    reached(static_cast<double>(++built) / static_cast<double>(2 * built_.size()));
  });
  for (std::size_t i = 0; i < built_.size(); ++i) {
    built_[i] = by_itself_[i].result();
    add(from_others_[i].result(), built_[i]);
  }
}

/// Where they are few. The bounds of any order then say so.
void JointSearch::try_all_orders() {
  std::vector<double> bounds(built_.size());
  for (std::size_t i = 0; i < built_.size(); ++i) {
    if (!may_build_faster(i) || !may_try_every_order(model_, problem_, to_build_[i])) continue;
    const EveryOrder every = try_every_order(model_, problem_, to_build_[i], best_time());
    if (every.faster) add(*every.faster, built_[i]);
    bounds[i] = every.bound;
  }
  bound_any_order();
  for (AnyOrder& bounded : any_order_)
    bounded.raise(bounds[static_cast<std::size_t>(std::ranges::find(to_build_, bounded.spec()) -
                                                  to_build_.begin())]);
}

/// Whether to build orders of a schedule for the costs: not if it is known to have no plan, or no
/// faster one.
bool JointSearch::may_build_faster(std::size_t i) const {
  if (!built_[i].impossible.empty() || built_[i].nothing_fits) return false;
  const auto bounded = std::ranges::find(any_order_, to_build_[i], &AnyOrder::spec);
  return bounded == any_order_.end() || bounded->bound() < best_time();
}

/// Something is left to do that may find a first plan or a faster one.
bool JointSearch::may_find_faster() const {
  if (!ranked([](const Contender&) { return 0; }).empty()) return true;
  for (std::size_t i = 0; i < to_build_.size(); ++i)
    if (begun_ == 0 || may_build_faster(i)) return true;
  return false;
}

}  // namespace pfeife
