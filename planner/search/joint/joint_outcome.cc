#include "planner/search/joint/joint_outcome.h"

#include <algorithm>
#include <set>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/round_down.h"
#include "planner/search/joint/joint_certificate.h"
#include "planner/search/price/lack.h"
#include "planner/search/price/numbers.h"
#include "planner/search/price/pareto.h"

namespace pfeife {

namespace {

/// Adds the bound of all cuts of the listed schedules, or of some.
void bound_listed(const Searched& in, Answer& outcome) {
  const auto best = static_cast<double>(outcome.plans.front().estimate.count());
  const double least = std::min(best, least_bound(in.contenders));
  Bound& found =
      outcome.bound.emplace(Bound{.time = Nanoseconds{static_cast<std::int64_t>(least)}});
  for (const Contender& c : in.contenders)
    if (c.proof) found.least_share = std::max(found.least_share, c.proof->least_share());
  found.linked = linked_only(in.contenders);
  found.recompute = in.problem.recompute;
  found.schedules = in.problem.schedules;
  found.memory_limit = in.problem.memory_limit;
  outcome.covered = {listed_class(in.problem, found)};
}

bool not_below(const Contender& c, const Answer& outcome) {
  return !outcome.plans.empty() &&
         c.bound() >= static_cast<double>(outcome.plans.front().estimate.count());
}

/// Schedules that have a plan come first, the fastest of them ahead; then by their bounds, or by
/// what they lack where nothing fits.
void explain(const Searched& in, Answer& outcome) {
  const std::size_t kept = std::min(outcome.plans.size(), in.options.keep);
  using Rank = std::tuple<std::ptrdiff_t, Bytes, Nanoseconds>;  // place, lack, bound
  std::vector<std::pair<Rank, Rejected>> rejected;
  const auto explain_one = [&](const ScheduleSpec& spec, bool not_below,
                               const std::optional<Infeasible>& lack,
                               std::optional<Nanoseconds> bound) {
    const auto plan = std::ranges::find(outcome.plans, spec, &Priced::spec);
    const auto place = plan - outcome.plans.begin();
    if (place < static_cast<std::ptrdiff_t>(kept)) return;
    const Bytes missing = lack && outcome.plans.empty() ? lack->lacking() : Bytes{0};
    Reason reason = lack ? lacks(*lack) : Reason{.why = Why::NothingFound};
    if (not_below)
      reason = {.why = Why::RuledOut};
    else if (plan != outcome.plans.end())
      reason = slower_by(plan->estimate - outcome.plans.front().estimate);
    rejected.push_back({{place, missing, bound.value_or(Nanoseconds{0})}, {spec, reason, bound}});
  };
  for (const Contender& c : in.contenders)
    if (c.impossible.empty())
      explain_one(in.problem.schedules[c.number], not_below(c, outcome), c.candidates->closest(),
                  known(c.bound()));
  for (const BuiltPlan& b : in.built)
    if (b.impossible.empty()) explain_one(b.spec, false, b.closest, {});
  std::ranges::stable_sort(rejected, {}, [](const auto& ranked) { return ranked.first; });
  auto end = outcome.rejected.begin();  // before those that cannot be at all
  for (auto& [rank, rejection] : rejected)
    end = outcome.rejected.insert(end, std::move(rejection)) + 1;
  outcome.plans.resize(kept);
}

}  // namespace

Answer joint_outcome(const Searched& in, std::vector<SearchStep> history) {
  Answer outcome;
  outcome.candidates = evaluated(in.contenders, in.built);
  std::optional<Infeasible> closest;
  for (const Contender& c : in.contenders) {
    const ScheduleSpec& spec = in.problem.schedules[c.number];
    if (!c.impossible.empty()) {
      outcome.rejected.push_back({spec, impossible(c.impossible)});
      continue;
    }
    if (c.candidates->best()) outcome.plans.push_back(*c.candidates->best());
    note_closest(c.candidates->closest(), closest);
  }
  for (const BuiltPlan& b : in.built) {
    if (!b.impossible.empty()) outcome.rejected.push_back({b.spec, impossible(b.impossible)});
    if (b.plan) outcome.plans.push_back(*b.plan);
    note_closest(b.closest, closest);
  }
  std::ranges::stable_sort(outcome.plans, {}, [](const Priced& p) {
    return std::pair{p.estimate, p.spec};
  });
  outcome.all = outcome.plans;
  std::vector<Priced> seen = outcome.plans;
  const auto see = [&](const std::vector<Priced>& front) {
    seen.insert(seen.end(), front.begin(), front.end());
  };
  for (const Contender& c : in.contenders)
    if (c.candidates) see(c.candidates->front());
  for (const BuiltPlan& b : in.built) see(b.front);
  outcome.front = pareto_front(std::move(seen), in.problem.memory_limit);
  if (outcome.plans.empty()) {
    outcome.infeasible = std::move(closest);
    if (outcome.infeasible)
      outcome.infeasible->proven =
          std::ranges::none_of(
              in.contenders,
              [](const Contender& c) {
                return c.open() || (c.impossible.empty() && c.candidates->unsure() < kInfinite);
              }) &&
          std::ranges::all_of(
              in.built, [](const BuiltPlan& b) { return b.nothing_fits || !b.impossible.empty(); });
  } else {
    bound_listed(in, outcome);
    add_any_order(in.any_order, outcome);
    // The class of the plan may be wider than the listed schedules.
    for (SearchStep& step : history)
      if (step.bound) step.bound = std::min(*step.bound, outcome.bound->time);
  }
  outcome.history = std::move(history);
  explain(in, outcome);
  if (in.options.certificate && in.problem.memory_rule == MemoryRule::Lifetimes)
    outcome.certificate = joint_certificate(in, in.any_order, outcome);
  return outcome;
}

Covered listed_class(const Problem& problem, const Bound& bound) {
  return {.bound = bound,
          .layer_order = problem.layers.order,
          .layers = problem.layers.size(),
          .listed = problem.schedules.size(),
          .except_last = problem.recompute_except_last};
}

void add_any_order(const std::vector<AnyOrder>& any_order, Answer& outcome) {
  Bound& bound = *outcome.bound;
  double any = kInfinite, by_rows = kInfinite;
  std::set<ScheduleSpec> schedules;
  bool tried_all = false;
  for (const AnyOrder& bounded : any_order) {
    any = std::min(any, bounded.bound()), by_rows = std::min(by_rows, bounded.bound_by_rows());
    schedules.insert(bounded.spec());
    tried_all = tried_all || bounded.tried_all();
  }
  if (any == kInfinite) return;
  const Nanoseconds least{static_cast<std::int64_t>(any)};
  const bool built = outcome.plans.front().order.has_value();
  outcome.orders_left_out = !built && least < bound.time;
  Covered& covered = outcome.covered.back();
  if (outcome.orders_left_out) {
    covered.left_out = schedules, covered.left_out_bound = least;
    return;
  }
  bound.time = std::min(bound.time, least);
  const bool proven = by_rows >= static_cast<double>(bound.time.count());
  if (proven || !tried_all) covered.any_order = schedules;
  if (!proven && (tried_all || !built))
    outcome.uncertified.any_order = schedules, outcome.uncertified.in_turn = tried_all;
  // A certificate speaks of them only if it then proves no less of the others.
  if (proven || built)
    for (const AnyOrder& bounded : any_order) bound.schedules.push_back(bounded.spec());
}

}  // namespace pfeife
