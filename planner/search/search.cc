// The joint search over schedules and cuts.
//
//  1. Every schedule starts from min-max cuts; the best few of them are polished: an upper bound.
//  2. Every schedule's lower bound; those above the upper bound are out.
//  3. Local search and annealing on what is left, then bounds again.
//  4. Orders built for the costs (zb_greedy), starting from the best cuts.
//  5. Branch and bound in rounds, always on the schedules with the lowest bounds, until nothing is
//     left below the best plan or the budget is spent.
//
// Schedules are independent within a step, the parts of a tree within a round, and steps and rounds
// exchange what they found in a fixed order, so the outcome does not depend on the number of
// threads. Budgets are counts.
#include "planner/search/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "planner/ir/error.h"
#include "planner/schedules/families.h"
#include "planner/search/any_order.h"
#include "planner/search/contender.h"
#include "planner/search/given_cuts.h"
#include "planner/search/joint_outcome.h"
#include "planner/search/parallel.h"
#include "planner/search/segment_bound.h"
#include "planner/search/stage_bound.h"
#include "planner/search/start_cuts.h"

namespace pfeife {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::size_t kDefaultEffort = 500;
constexpr std::size_t kPolishedFirst = 4;     ///< schedules that make the first upper bound
constexpr std::size_t kAnnealed = 8;          ///< schedules annealed of each number of loops
constexpr std::size_t kFirstAnnealing = 300;  ///< batches
constexpr std::size_t kShared = 16;           ///< cuts of other schedules that one tries
constexpr std::size_t kSchedulesARound = 4;   ///< of branch and bound
constexpr std::size_t kPartsARound = 8;       ///< of their trees, all together
constexpr std::size_t kSideBySide = 8;        ///< schedules begun before a budget is looked at
constexpr double kJudging = 5e8;              ///< ns for the simple cuts of all schedules
constexpr double kDescents = 1.5e9;           ///< ns for descents on all schedules
constexpr double kBounding = 1e7;             ///< ns for the first bounds, per effort
constexpr double kNodeOverhead = 50000;       ///< ns, beside the master and the minima

class JointSearch {
 public:
  /// `built`: schedules beside problem.schedules whose order is built for the costs.
  JointSearch(const Problem& problem, const std::vector<ScheduleSpec>& built,
              const SearchOptions& options)
      : problem_(problem),
        to_build_(built),
        options_(options),
        effort_(options.iterations > 0 ? options.iterations : kDefaultEffort),
        model_(problem.layers, problem.cluster, problem.memory_rule,
               problem.recompute == Recompute::Full) {}

  SearchOutcome run() {
    place_start();
    report(0.1);
    polish_first();
    report(0.2);
    bound_all();
    report(0.35);
    anneal_best();
    bound_all();
    report(0.6);
    build_orders();
    report(0.6);
    branch();
    report(1);
    return joint_outcome({problem_, to_build_, options_, model_, contenders_, built_},
                         std::move(history_));
  }

 private:
  void report(double fraction) {
    if (options_.progress) options_.progress(fraction);
    const SearchStep step{evaluated(contenders_, built_), known(best_time()),
                          known(least_bound(contenders_))};
    if (history_.empty() || history_.back() != step) history_.push_back(step);
  }
  double best_time() const {
    double best = kInfinite;
    for (const Contender& c : contenders_)
      if (c.candidates) best = std::min(best, c.candidates->best_time());
    for (const BuiltPlan& b : built_)
      if (b.plan) best = std::min(best, static_cast<double>(b.plan->estimate.count()));
    return best;
  }
  /// Numbers of the contenders that may yet give a faster plan, smallest key first. (A certificate
  /// needs the proofs of all, whatever their floor.)
  template <class Key>
  std::vector<std::size_t> ranked(const Key& key) const {
    std::vector<std::size_t> order;
    const double best = best_time();
    for (const Contender& c : contenders_)
      if (c.open() && (c.floor < best || options_.certificate)) order.push_back(c.number);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return key(contenders_[i]); });
    return order;
  }
  template <class Work>
  void each(const std::vector<std::size_t>& numbers, const Work& work) {
    parallel_for(numbers.size(), options_.threads,
                 [&](std::size_t i) { work(contenders_[numbers[i]]); });
  }

  /// The same in this order until about `budget` ns of one core are spent: counted, not measured.
  template <class Work>
  void each_within(double budget, const std::vector<std::size_t>& numbers, const Work& work) {
    parallel_while(budget, numbers.size(), kSideBySide, options_.threads, [&](std::size_t k) {
      Contender& c = contenders_[numbers[k]];
      const double before = work_so_far(c);
      work(c);
      return work_so_far(c) - before;
    });
  }
  static double work_so_far(const Contender& c) {
    return c.candidates->work() + (c.proof ? c.proof->work() : 0);
  }

  void place_start() {
    contenders_.resize(problem_.schedules.size());
    std::map<std::vector<RankId>, std::vector<Cuts>> simple;
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      const ScheduleSpec& spec = problem_.schedules[i];
      Placement placement = placement_for(spec);
      placement.device_of_rank = problem_.device_of_rank;
      contenders_[i].number = i;
      const auto [at, added] = simple.try_emplace(placement.rank_of_stage);
      if (added) at->second = simple_cuts(model_, placement);
      contenders_[i].simple = at->second;
      if (at->second.empty())
        contenders_[i].impossible =
            stream_all("the model has no ", spec.stages(), " stages: too few legal cuts");
    }
    each(ranked([](const Contender&) { return 0; }), [&](Contender& c) {
      const ScheduleSpec& spec = problem_.schedules[c.number];
      c.candidates = std::make_unique<Candidates>(model_, problem_, spec);
      c.floor = segment_bound(model_, problem_, c.candidates->schedule());
      if (spec.loops == 1)
        c.simple.push_back(stage_cuts(model_, c.candidates->costs(), c.candidates->schedule()));
      c.start.score = kInfinite;
      std::vector<double> times;
      std::vector<char> sure;
      c.candidates->search_times(c.simple, times, sure);
      for (std::size_t k = 0; k < c.simple.size(); ++k)
        if (const double worth = c.candidates->weigh(c.simple[k], times[k]);
            c.start.cuts.empty() || worth < c.start.score)
          c.start = {c.simple[k], worth};
    });
    each_within(kJudging, ranked([](const Contender& c) { return c.start.score; }),
                [](Contender& c) {
                  if (c.start.score < Candidates::kTooFull) offer(c, c.start.cuts);
                  for (const Cuts& cuts : c.simple)
                    if (&cuts == &c.simple.front() || !c.candidates->surely_too_full(cuts))
                      offer(c, cuts);
                  if (c.candidates->best_time() < kInfinite) return;
                  c.start = score(*c.candidates, roomy_cuts(*c.candidates, c.start.cuts));
                  offer(c, c.start.cuts);
                });
  }
  static void offer(Contender& c, const Cuts& cuts) {
    double time = c.candidates->search_time(cuts);
    if (time > c.candidates->best_time()) return;
    if (c.candidates->estimator_is_dear()) time = c.candidates->time(cuts);
    c.candidates->offer(cuts, time);
  }

  /// Descends, judges, and again: what the exact memory rule refuses, Candidates::excess knows
  /// better the next time.
  static void descend_and_offer(Contender& c, const Cuts& cuts) {
    Scored from = score(*c.candidates, cuts);
    if (cuts == c.start.cuts) c.start = from;  // its score may have been a lower bound
    for (int attempt = 0; attempt < 4; ++attempt) {
      from = descend(*c.candidates, from, 400);
      offer(c, from.cuts);
      if (c.candidates->best_time() <= from.score) break;
      from = score(*c.candidates, from.cuts);
    }
    if (from.score < c.start.score || c.candidates->best_time() == kInfinite) c.start = from;
  }

  void polish_first() {
    std::vector<std::size_t> order = ranked([](const Contender& c) { return c.start.score; });
    order.resize(std::min(order.size(), kPolishedFirst));
    each(order, [](Contender& c) { descend_and_offer(c, c.start.cuts); });
  }

  void bound_all() {
    const double target = best_time();
    const auto by_start = [](const Contender& c) { return c.start.score; };
    const auto bound_one = [&](Contender& c) { bound(c, target); };
    std::vector<std::size_t> order = ranked(by_start);
    order.resize(std::min(order.size(), kSideBySide));
    each(order, bound_one);
    raise_floors(target);
    each_within(static_cast<double>(effort_) * kBounding, ranked(by_start), bound_one);
    bound_unproven();
  }
  /// Schedules that the budget has left without a proof: what no order of their stages goes below.
  void bound_unproven() {
    std::map<std::pair<std::vector<RankId>, std::size_t>, double> least;
    for (const std::size_t i : ranked([](const Contender&) { return 0; })) {
      Contender& c = contenders_[i];
      if (c.proof) continue;
      const ScheduleSpec& spec = problem_.schedules[i];
      const auto [at, added] = least.try_emplace(
          std::pair{c.candidates->placement().rank_of_stage, spec.microbatches}, 0.0);
      if (added) at->second = AnyOrder(model_, problem_, spec).bound();
      c.floor = std::max(c.floor, at->second);
    }
  }
  /// Once the class that is covered has linked stages only, what holds for those needs no proof. Of
  /// few stages a certificate is wanted that says the same: there the proofs do without.
  void raise_floors(double target) {
    if (std::ranges::none_of(contenders_,
                             [](const Contender& c) { return c.proof && c.proof->linked_only(); }))
      return;
    each(ranked([](const Contender&) { return 0; }), [&](Contender& c) {
      if (options_.certificate && c.candidates->stages() <= Relaxation::kFewStages) return;
      const std::vector<CutCosts::Latency> none(c.candidates->stages(), {0, 0});
      c.floor =
          std::max(c.floor, stage_bound(model_, c.candidates->costs(), c.candidates->schedule(),
                                        none, std::min(target, Candidates::kTooFull)));
    });
  }
  void bound(Contender& c, double target) {
    if (!c.proof)
      c.proof = std::make_unique<BranchAndBound>(
          *c.candidates, BranchAndBound::Settings{.record = options_.certificate});
    c.proof->bound_root(target);
  }

  void anneal_best() {
    std::vector<std::size_t> order = ranked([](const Contender& c) { return c.bound(); });
    each_within(kDescents, order, [](Contender& c) {
      if (c.proof && !c.proof->nearest().empty())
        if (const Scored found = score(*c.candidates, c.proof->nearest());
            found.score < c.start.score)
          c.start = found;
      descend_and_offer(c, c.start.cuts);
    });
    share_cuts();
    // The best of each number of loops, so that more loops to choose from leave those there were
    // their part.
    std::map<std::size_t, std::size_t> annealed;
    order = ranked([](const Contender& c) { return std::pair{c.start.score, c.bound()}; });
    std::erase_if(
        order, [&](std::size_t i) { return annealed[problem_.schedules[i].loops]++ >= kAnnealed; });
    each_within(kDescents, order, [&](Contender& c) {
      const std::uint64_t seed =
          digest({&problem_.schedules[c.number], 1}) + options_.seed * 1000003;
      // A short run first, the same whatever the effort, so that more of it loses nothing.
      const std::size_t first = std::min(kFirstAnnealing, 3 * effort_);
      Scored found = anneal(*c.candidates, c.start, first, seed);
      const Scored later = anneal(*c.candidates, found, 3 * effort_ - first, seed + 1);
      if (later.score < found.score) found = later;
      descend_and_offer(c, found.cuts);
    });
    share_cuts();
  }

  /// The best cuts of every schedule are tried with the others of as many stages: schedules that
  /// differ little have much the same best cuts, but not each finds them.
  void share_cuts() {
    std::map<std::size_t, std::vector<Cuts>> good;
    for (const std::size_t i : by_time())
      if (auto& some = good[contenders_[i].candidates->stages()]; some.size() < kShared)
        some.push_back(contenders_[i].candidates->best_cuts());
    each_within(kDescents, ranked([](const Contender& c) { return c.bound(); }), [&](Contender& c) {
      const auto some = good.find(c.candidates->stages());
      if (some == good.end()) return;
      std::vector<double> times;
      std::vector<char> sure;
      c.candidates->search_times(some->second, times, sure);
      Scored best = c.start;
      for (std::size_t k = 0; k < times.size(); ++k)
        if (times[k] < best.score)
          if (const Scored found = score(*c.candidates, some->second[k]); found.score < best.score)
            best = found;
      if (best.score < c.start.score) descend_and_offer(c, best.cuts);
    });
  }

  void build_orders() {
    std::vector<Partition> starts;
    for (const std::size_t i : by_time())
      starts.push_back(contenders_[i].candidates->best()->partition);
    built_.resize(to_build_.size());
    parallel_for(built_.size(), options_.threads, [&](std::size_t i) {
      built_[i] = build_plan(model_, problem_, to_build_[i], starts, effort_, options_.seed,
                             options_.threads);
    });
  }
  /// Numbers of the contenders with a plan, the fastest first.
  std::vector<std::size_t> by_time() const {
    std::vector<std::size_t> order;
    for (const Contender& c : contenders_)
      if (c.candidates && c.candidates->best()) order.push_back(c.number);
    std::ranges::stable_sort(order, {},
                             [&](std::size_t i) { return contenders_[i].candidates->best_time(); });
    return order;
  }

  void branch() {
    double left = static_cast<double>(effort_) * 1e6;  // about ns of one core
    while (left > 0) {
      std::vector<std::size_t> order = ranked([](const Contender& c) { return c.bound(); });
      if (order.empty()) break;
      order.resize(std::min(order.size(), kSchedulesARound));
      for (const std::size_t i : order) left += spent(contenders_[i]);
      branch_round(order);
      for (const std::size_t i : order) left -= spent(contenders_[i]) + node_cost(contenders_[i]);
      report(1 - 0.4 * std::max(0.0, left) / (static_cast<double>(effort_) * 1e6));
    }
  }
  /// Every tree in a few parts, so that several threads have work even if one schedule is left.
  void branch_round(const std::vector<std::size_t>& order) {
    const double target = best_time();
    std::vector<double> before;
    std::vector<std::pair<std::size_t, BranchAndBound*>> parts;  // of which contender
    for (const std::size_t i : order) {
      before.push_back(contenders_[i].candidates->best_time());
      if (BranchAndBound* const proof = contenders_[i].proof.get())
        for (BranchAndBound* part : proof->deal(kPartsARound / order.size()))
          parts.emplace_back(i, part);
      else
        parts.emplace_back(i, nullptr);
    }
    std::vector<std::size_t> nodes;
    for (const auto& [i, proof] : parts)
      nodes.push_back(proof == nullptr ? 0 : nodes_a_round(contenders_[i]));
    parallel_for(parts.size(), options_.threads, [&](std::size_t k) {
      const auto [i, proof] = parts[k];
      if (proof == nullptr) return bound(contenders_[i], target);
      if (proof == contenders_[i].proof.get()) proof->strengthen_root(target);
      proof->run(nodes[k], target);
    });
    parallel_for(order.size(), options_.threads, [&](std::size_t k) {
      Contender& c = contenders_[order[k]];
      c.proof->join();
      if (before[k] == kInfinite && !c.proof->nearest().empty())
        descend_and_offer(c, c.proof->nearest());
      if (c.candidates->best_time() < before[k]) descend_and_offer(c, c.candidates->best_cuts());
    });
  }
  static double spent(const Contender& c) {
    if (!c.proof) return 0;
    const double search = c.candidates->estimator_is_dear() ? c.candidates->work() : 0;
    return search + c.proof->work() + static_cast<double>(c.proof->nodes()) * kNodeOverhead;
  }
  /// About how long a node takes, ns: the root is like several.
  static double node_cost(const Contender& c) {
    constexpr double kRoot = 8;
    return spent(c) / (static_cast<double>(c.proof->nodes()) + kRoot);
  }
  static std::size_t nodes_a_round(const Contender& c) {
    return static_cast<std::size_t>(std::clamp(2e7 / node_cost(c), 1.0, 400.0));
  }

  const Problem& problem_;
  const std::vector<ScheduleSpec> to_build_;
  const SearchOptions& options_;
  std::size_t effort_;
  CutModel model_;
  std::vector<Contender> contenders_;
  std::vector<BuiltPlan> built_;  // [to_build_]
  std::vector<SearchStep> history_;
};

}  // namespace

SearchOutcome search(const Problem& problem, const SearchOptions& options) {
  if (problem.cuts) return choose_schedule(problem, options);
  Problem known = problem;  // without the schedules whose order is yet to be built
  std::erase_if(known.schedules, is_built);
  std::vector<ScheduleSpec> to_build;
  std::ranges::copy_if(problem.schedules, std::back_inserter(to_build), is_built);
  return JointSearch(known, to_build, options).run();
}

}  // namespace pfeife
