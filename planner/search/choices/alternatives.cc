#include "planner/search/choices/alternatives.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/round_down.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/pool/pool.h"
#include "planner/search/price/lack.h"

namespace pfeife {
namespace {

constexpr std::size_t kLittleEffort = 30;  ///< of a first search
constexpr std::size_t kShort = 4;          ///< a short final search has this part of the effort
constexpr std::size_t kTimed = 12;         ///< plans of each problem

std::size_t brief_effort(const SearchOptions& options) {
  return std::min(options.effort(), kLittleEffort);
}
std::size_t short_effort(const SearchOptions& options) {
  return std::max<std::size_t>(1, options.effort() / kShort);
}

class Alternatives {
 public:
  Alternatives(const std::vector<Problem>& problems, const SearchOptions& options,
               const Searcher& searcher, const Finals& finals)
      : problems_(problems),
        options_(options),
        searcher_(searcher),
        finals_(finals),
        all_(problems.size()),
        outcomes_(problems.size()) {
    PFEIFE_CHECK(!problems.empty(), "no problem to search");
  }

  BestAlternative run() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      all_[i].builds = std::ranges::any_of(problems_[i].schedules, is_built);
      forget(i);
    }
    if (problems_.size() > 1) search_briefly();
    search_fully();
    return best();
  }

 private:
  std::vector<std::size_t> by(const auto& key) const {
    std::vector<std::size_t> order(problems_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, key);
    return order;
  }
  Nanoseconds best_time() const {
    Nanoseconds best = kNothingFits;
    for (std::size_t i = 0; i < all_.size(); ++i) best = std::min(best, time_of(i));
    return best;
  }
  Nanoseconds time_of(std::size_t i) const {
    const AlternativeOutcome& alternative = all_[i];
    return !alternative.plan ? kNothingFits
                             : alternative.timed.value_or(alternative.plan->estimate);
  }

  /// What is known without a search, which holds for every choice of what stages recompute and
  /// offload.
  void forget(std::size_t i) {
    const Problem& problem = problems_[i];
    all_[i].listed = all_[i].any_order = Nanoseconds{
        static_cast<std::int64_t>(work_bound(problem.offload ? without_limits(problem) : problem))};
    all_[i].recompute =
        problems_[i].recompute == Recompute::None ? Recompute::Choose : problems_[i].recompute;
  }

  /// Whether what is claimed holds for plans that offload, if these are asked for.
  static bool covers_all(const Problem& problem, const Answer& outcome) {
    return !problem.offload || std::ranges::any_of(outcome.covered, &Covered::offload);
  }

  /// Takes what a search has found. A bound holds for the plans of the schedules that are listed,
  /// and for every order only if the best plan is one built for its costs (Answer::bound).
  void keep_outcome(std::size_t i, Answer outcome) {
    AlternativeOutcome& alternative = all_[i];
    candidates_ += outcome.candidates;
    // More effort does not always end at a better plan; what it proves holds for the other, too.
    std::optional<Nanoseconds> timed;
    if (all_.size() > 1) timed = least_time(problems_[i], outcome, options_);
    const bool slower =
        alternative.plan &&
        (outcome.plans.empty() || time_of(i) < timed.value_or(outcome.plans[0].estimate));
    if (alternative.searched &&
        outcome.recompute != alternative.recompute) {  // of another class of plans
      if (slower) return;
      forget(i);
    }
    alternative.searched = true, alternative.recompute = outcome.recompute;
    if (covers_all(problems_[i], outcome)) {
      if (outcome.bound) alternative.listed = std::max(alternative.listed, outcome.bound->time);
      if (outcome.bound && outcome.plans[0].order)
        alternative.any_order = std::max(alternative.any_order, outcome.bound->time);
      if (outcome.infeasible && outcome.infeasible->proven)
        alternative.listed = alternative.any_order = kNothingFits;
    }
    if (slower) return;
    alternative.infeasible = outcome.infeasible, alternative.timed = timed;
    if (!outcome.plans.empty()) alternative.plan = outcome.plans[0];
    outcomes_[i] = std::move(outcome);
  }

  void search_briefly() {
    SearchOptions brief = options_;
    brief.iterations = brief_effort(options_);
    for (const std::size_t i : by([&](std::size_t k) { return all_[k].bound(); }))
      if (all_[i].bound() < best_time()) keep_outcome(i, searcher_(problems_[i], brief));
  }

  /// The best `most` of those that may still be best; how many more there are.
  std::size_t search_best(std::size_t most, const SearchOptions& options) {
    const auto promise = [&](std::size_t i) { return std::pair{time_of(i), lack(i)}; };
    std::size_t searched = 0, left = 0;
    for (const std::size_t i : by(promise)) {
      if (searched > 0 && (!all_[i].searched || all_[i].bound() >= best_time())) continue;
      if (searched == most) {
        ++left;
        continue;
      }
      keep_outcome(i, searcher_(problems_[i], options));
      ++searched;
    }
    best_ = by(promise)[0];
    return left;
  }
  void search_fully() {
    if (finals_.short_ones > 0 && problems_.size() > 1) {
      SearchOptions shorter = options_;
      shorter.iterations = short_effort(options_);
      search_best(finals_.short_ones, shorter);
    }
    left_ = search_best(finals_.full, options_);
  }
  /// Bytes that a problem without a plan lacks.
  Bytes lack(std::size_t i) const {
    const auto& lack = all_[i].infeasible;
    return lack ? lack->lacking() : Bytes{std::numeric_limits<std::int64_t>::max()};
  }

  BestAlternative best() {
    const bool built = all_[best_].plan && all_[best_].plan->order;
    Pool pool(std::move(outcomes_[best_]), problems_[best_].memory_limit);
    pool.count(candidates_ - pool.answer().candidates);
    if (left_ > 0) pool.leave_unfinished({Unfinished::What::OpenChoices, left_});
    // The bound of one problem is the search's own, which its certificate proves.
    if (pool.answer().bound && all_.size() > 1) {
      // The bounds of the other problems are of the listed schedules.
      pool.leave_out_orders(pool.answer().orders_left_out ||
                            (!built && std::ranges::any_of(problems_[best_].schedules, is_built)));
      Nanoseconds least = pool.answer().plans[0].estimate;
      for (const AlternativeOutcome& alternative : all_)
        least = std::min(least, built ? alternative.any_order : alternative.listed);
      pool.rebound(least);
    }
    if (!std::ranges::all_of(all_, [](const AlternativeOutcome& alternative) {
          return alternative.bound() == kNothingFits ||
                 (alternative.infeasible && alternative.infeasible->proven);
        }))
      pool.prove_infeasible(false);
    return {best_, std::move(pool).take(), std::move(all_)};
  }

  const std::vector<Problem>& problems_;
  const SearchOptions& options_;
  const Searcher& searcher_;
  const Finals finals_;
  std::vector<AlternativeOutcome> all_;
  std::vector<Answer> outcomes_;  // [problem]
  std::size_t best_ = 0, candidates_ = 0, left_ = 0;
};

}  // namespace

std::optional<Nanoseconds> least_time(const Problem& problem, const Answer& answer,
                                      const SearchOptions& options) {
  if (!options.times || answer.plans.empty()) return std::nullopt;
  std::vector<Priced> plans = answer.all.empty() ? answer.plans : answer.all;
  if (plans.size() > kTimed) plans.resize(kTimed);
  return std::ranges::min(options.times(problem, plans));
}

double most_work(std::size_t problems, const SearchOptions& options, const Finals& finals) {
  const std::size_t several = problems > 1 ? problems : 0;
  return static_cast<double>(several) * search_work(brief_effort(options)) +
         static_cast<double>(std::min(several, finals.short_ones)) *
             search_work(short_effort(options)) +
         static_cast<double>(std::min(problems, finals.full)) * search_work(options.effort());
}

BestAlternative search_alternatives(const std::vector<Problem>& problems,
                                    const SearchOptions& options, const Searcher& searcher,
                                    const Finals& finals) {
  return Alternatives(problems, options, searcher, finals).run();
}

Reason why_not(const BestAlternative& found, std::size_t problem) {
  const AlternativeOutcome& alternative = found.all[problem];
  if (problem == found.best) return {};
  if (!found.outcome.plans.empty() && alternative.bound() >= found.outcome.plans[0].estimate &&
      alternative.bound() != kNothingFits)
    return {.why = Why::RuledOut};
  if (alternative.plan && alternative.timed && found.all[found.best].timed) {
    Reason reason = slower_by(*alternative.timed - *found.all[found.best].timed);
    reason.by = SelectBy::Simulate;
    return reason;
  }
  if (alternative.plan)
    return slower_by(alternative.plan->estimate - found.outcome.plans[0].estimate);
  if (!alternative.infeasible) return impossible("it cannot be cut into so many stages");
  Reason lack = lacks(*alternative.infeasible);
  lack.may_yet_fit = alternative.bound() != kNothingFits;
  return lack;
}

}  // namespace pfeife
