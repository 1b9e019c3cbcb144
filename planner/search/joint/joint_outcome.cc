#include "planner/ir/basics/error.h"
#include "planner/ir/basics/round_down.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/joint/joint_certificate.h"
#include "planner/search/pool/pool.h"
#include "planner/search/price/lack.h"
#include "planner/search/price/numbers.h"

namespace pfeife {

namespace {

/// What no plan of the listed schedules is below, whatever their cuts, or some of these.
Claim listed_claim(const Searched& in, const Priced& fastest) {
  const double least =
      std::min(static_cast<double>(fastest.estimate.count()), least_bound(in.contenders));
  Bound bound{.time = Nanoseconds{static_cast<std::int64_t>(least)}};
  for (const Contender& c : in.contenders)
    if (c.proof) bound.least_share = std::max(bound.least_share, c.proof->least_share());
  bound.linked = linked_only(in.contenders);
  bound.recompute = in.problem.recompute;
  bound.schedules = in.problem.schedules;
  bound.memory_limit = in.problem.memory_limit;
  return listed_claim(in.problem, std::move(bound));
}

/// Why schedules are not among the `kept` fastest plans. Those that have a plan come first, the
/// fastest of them ahead; then by their bounds, or by what they lack where nothing fits; then those
/// that cannot be at all.
std::vector<Rejected> explained(const Searched& in, const std::vector<Priced>& plans,
                                std::size_t kept) {
  using Rank = std::tuple<std::ptrdiff_t, Bytes, Nanoseconds>;  // place, lack, bound
  std::vector<std::pair<Rank, Rejected>> ranked;
  const auto explain = [&](const ScheduleSpec& spec, bool ruled_out,
                           const std::optional<Infeasible>& lack,
                           std::optional<Nanoseconds> bound) {
    const auto plan = std::ranges::find(plans, spec, &Priced::spec);
    const auto place = plan - plans.begin();
    if (place < static_cast<std::ptrdiff_t>(kept)) return;
    const Bytes missing = lack && plans.empty() ? lack->lacking() : Bytes{0};
    Reason reason = lack ? lacks(*lack) : Reason{.why = Why::NothingFound};
    if (ruled_out)
      reason = {.why = Why::RuledOut};
    else if (plan != plans.end())
      reason = slower_by(plan->estimate - plans.front().estimate);
    ranked.push_back({{place, missing, bound.value_or(Nanoseconds{0})}, {spec, reason, bound}});
  };
  std::vector<Rejected> rejected;
  for (const Contender& c : in.contenders) {
    const ScheduleSpec& spec = in.problem.schedules[c.number];
    if (!c.impossible.empty())
      rejected.push_back({spec, impossible(c.impossible)});
    else
      explain(spec,
              !plans.empty() && c.bound() >= static_cast<double>(plans.front().estimate.count()),
              c.candidates->closest(), known(c.bound()));
  }
  for (const BuiltPlan& b : in.built) {
    if (!b.impossible.empty())
      rejected.push_back({b.spec, impossible(b.impossible)});
    else
      explain(b.spec, false, b.closest, {});
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  auto end = rejected.begin();
  for (auto& [rank, rejection] : ranked) end = rejected.insert(end, std::move(rejection)) + 1;
  return rejected;
}

/// No choice that was left out can fit.
bool nothing_fits(const Searched& in) {
  return std::ranges::none_of(in.contenders,
                              [](const Contender& c) {
                                return c.open() ||
                                       (c.impossible.empty() && c.candidates->unsure() < kInfinite);
                              }) &&
         std::ranges::all_of(
             in.built, [](const BuiltPlan& b) { return b.nothing_fits || !b.impossible.empty(); });
}

}  // namespace

Answer joint_outcome(const Searched& in, std::vector<SearchStep> history, std::size_t effort) {
  Pool pool(in.problem.memory_limit);
  pool.set_recompute(in.problem.recompute);
  pool.count(evaluated(in.contenders, in.built), effort);
  std::vector<Priced> plans, near;
  for (const Contender& c : in.contenders)
    if (c.candidates) {
      if (c.candidates->best()) plans.push_back(*c.candidates->best());
      near.insert(near.end(), c.candidates->front().begin(), c.candidates->front().end());
    }
  for (const BuiltPlan& b : in.built) {
    if (b.plan) plans.push_back(*b.plan);
    near.insert(near.end(), b.front.begin(), b.front.end());
  }
  std::ranges::stable_sort(plans, {}, &Priced::spec);
  pool.add(std::move(plans));
  pool.add_near(std::move(near));
  pool.set_history(std::move(history));
  for (const Contender& c : in.contenders)
    if (c.impossible.empty()) pool.add(c.candidates->closest());
  for (const BuiltPlan& b : in.built) pool.add(b.closest);
  const std::vector<Priced>& all = pool.answer().all;
  if (all.empty()) {
    pool.prove_infeasible(nothing_fits(in));
  } else {
    Claim claim = listed_claim(in, all.front());
    pool.leave_out_orders(add_any_order(in.any_order, all.front(), claim));
    pool.claim(std::move(claim));  // of the plan's class, which may be wider than the schedules
  }
  pool.keep(in.options.keep);
  pool.reject(explained(in, all, pool.answer().plans.size()));
  if (in.options.certificate && in.problem.memory_rule == MemoryRule::Lifetimes)
    pool.prove(joint_certificate(in, in.any_order, pool.answer()));
  return std::move(pool).take();
}

Claim listed_claim(const Problem& problem, Bound bound) {
  Claim claim;
  claim.covered = {listed_class(problem, bound)};
  claim.bound = std::move(bound);
  return claim;
}

Claim work_claim(const Problem& problem) {
  return listed_claim(problem, {.time = Nanoseconds{static_cast<std::int64_t>(work_bound(problem))},
                                .given_cuts = problem.cuts.has_value(),
                                .recompute = problem.recompute,
                                .schedules = problem.schedules,
                                .memory_limit = problem.memory_limit});
}

Covered listed_class(const Problem& problem, const Bound& bound) {
  return {.bound = bound,
          .layer_order = problem.layers->order,
          .layers = problem.layers->size(),
          .listed = problem.schedules.size(),
          .except_last = problem.recompute_except_last};
}

bool add_any_order(const std::vector<AnyOrder>& any_order, const Priced& fastest, Claim& claim) {
  Bound& bound = *claim.bound;
  double any = kInfinite, by_rows = kInfinite;
  std::set<ScheduleSpec> schedules;
  bool tried_all = false;
  for (const AnyOrder& bounded : any_order) {
    any = std::min(any, bounded.bound()), by_rows = std::min(by_rows, bounded.bound_by_rows());
    schedules.insert(bounded.spec());
    tried_all = tried_all || bounded.tried_all();
  }
  if (any == kInfinite) return false;
  const Nanoseconds least{static_cast<std::int64_t>(any)};
  const bool built = fastest.order.has_value();
  Covered& covered = claim.covered.back();
  if (!built && least < bound.time) {
    covered.left_out = schedules, covered.left_out_bound = least;
    return true;
  }
  bound.time = std::min(bound.time, least);
  const bool proven = by_rows >= static_cast<double>(bound.time.count());
  if (proven || !tried_all) covered.any_order = schedules;
  if (!proven && (tried_all || !built))
    claim.uncertified.any_order = schedules, claim.uncertified.in_turn = tried_all;
  // A certificate speaks of them only if it then proves no less of the others.
  if (proven || built)
    for (const AnyOrder& bounded : any_order) bound.schedules.push_back(bounded.spec());
  return false;
}

}  // namespace pfeife
