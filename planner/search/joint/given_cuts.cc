#include "planner/search/joint/given_cuts.h"

#include <algorithm>
#include <limits>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/parallel.h"
#include "planner/search/joint/joint_outcome.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/orders/every_order.h"
#include "planner/search/price/lack.h"
#include "planner/search/price/pareto.h"

namespace pfeife {

namespace {

using Tried = std::vector<std::unique_ptr<Candidates>>;  // [schedule] nullptr: not of these cuts

/// The proof looks at the cuts with each listed schedule.
void certify(const Problem& listed, const std::vector<AnyOrder>& any_order, Answer& outcome) {
  const std::vector<std::int64_t> all(listed.cuts->stages(), 0);
  CertifiedNode every_cut;
  every_cut.then = CertifiedNode::Then::Each;
  std::vector<CertifiedProof> proofs;
  for (const ScheduleSpec& spec : listed.schedules)
    proofs.push_back({spec, all, {}, {}, {every_cut}});
  std::int64_t bound = outcome.bound ? outcome.bound->time.count() : Certificate::kNothingFits;
  for (const AnyOrder& bounded : any_order)
    if (outcome.bound && std::ranges::find(outcome.bound->schedules, bounded.spec()) !=
                             outcome.bound->schedules.end()) {
      proofs.push_back(bounded.proof());
      bound = std::min(bound, static_cast<std::int64_t>(bounded.bound_by_rows()));
    }
  if (!proofs.empty() && bound > 0)
    outcome.certificate =
        std::make_shared<Certificate>(certificate_of(listed, bound, std::move(proofs)));
}

/// What no plan of these cuts is faster than. `every`: [schedule] what came of all its orders.
void prove(const Problem& problem, const Tried& tried, const std::vector<EveryOrder>& every,
           const SearchOptions& options, Answer& outcome) {
  const bool nothing_fits = outcome.infeasible && outcome.infeasible->proven;
  if (outcome.plans.empty() && !nothing_fits) return;
  const Layers layers = cut_only_at(*problem.cuts, problem.layers);
  const CutModel model(layers, problem.cluster, problem.memory_rule, problem.recomputes_all(),
                       problem.norm);
  Problem listed = with_layers(problem, layers);
  listed.schedules.clear();
  std::vector<AnyOrder> any_order;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < tried.size(); ++i) {
    if (!tried[i]) continue;
    if (is_built(problem.schedules[i])) {
      if (!nothing_fits)
        any_order.emplace_back(model, listed, problem.schedules[i]).raise(every[i].bound);
      continue;
    }
    listed.schedules.push_back(problem.schedules[i]);
    least = std::min({least, tried[i]->best_time(), tried[i]->unsure()});
  }
  if (!nothing_fits) {
    least = std::min(least, static_cast<double>(outcome.plans.front().estimate.count()));
    outcome.bound = Bound{.time = Nanoseconds{static_cast<std::int64_t>(least)},
                          .given_cuts = true,
                          .recompute = problem.recompute,
                          .schedules = listed.schedules,
                          .memory_limit = problem.memory_limit};
    outcome.covered = {listed_class(listed, *outcome.bound)};
    add_any_order(any_order, outcome);
  }
  if (options.certificate && problem.memory_rule == MemoryRule::Lifetimes)
    certify(listed, any_order, outcome);
}

/// [schedule] The best of all its orders where they are few.
std::vector<EveryOrder> try_all_orders(const CutModel& model, const Problem& problem,
                                       const Tried& tried) {
  std::vector<EveryOrder> every(tried.size());
  double best = std::numeric_limits<double>::infinity();
  for (const auto& candidates : tried)
    if (candidates) best = std::min(best, candidates->best_time());
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const ScheduleSpec& spec = problem.schedules[i];
    if (!tried[i] || !is_built(spec) || !may_try_every_order(model, problem, spec)) continue;
    every[i] = try_every_order(model, problem, spec, best);
    if (every[i].faster) best = static_cast<double>(every[i].faster->estimate.count());
  }
  return every;
}

}  // namespace

Answer choose_schedule(const Problem& problem, const SearchOptions& options,
                       const SearchFunction& search) {
  Answer outcome;
  std::optional<Infeasible> closest;
  const CutModel model(problem.layers, problem.cluster, problem.memory_rule,
                       problem.recomputes_all(), problem.norm);
  const std::optional<Cuts> cuts = model.cuts(*problem.cuts);
  Tried tried(problem.schedules.size());
  parallel_for(tried.size(), options.threads, [&](std::size_t i) {
    if (!cuts || problem.schedules[i].stages() != problem.cuts->stages()) return;
    if (is_built(problem.schedules[i])) {
      tried[i] = build_on_cuts(model, problem, problem.schedules[i], *cuts);
      return;
    }
    tried[i] = std::make_unique<Candidates>(model, problem, problem.schedules[i]);
    tried[i]->offer(*cuts, tried[i]->time(*cuts));
  });
  const std::vector<EveryOrder> every = try_all_orders(model, problem, tried);
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const ScheduleSpec& spec = problem.schedules[i];
    if (!tried[i]) {
      outcome.rejected.push_back(
          {spec, impossible(cuts ? stream_all("the given cuts make ", problem.cuts->stages(),
                                              " stages, it needs ", spec.stages())
                                 : illegal_because(problem.layers, *problem.cuts))});
      continue;
    }
    outcome.candidates += tried[i]->evaluated();
    if (every[i].faster) {
      outcome.plans.push_back(*every[i].faster);
      continue;
    }
    if (tried[i]->best()) {
      outcome.plans.push_back(*tried[i]->best());
      if (is_built(spec)) outcome.plans.back().order = tried[i]->schedule();
      continue;
    }
    const Infeasible& lack = *tried[i]->closest();
    outcome.rejected.push_back({spec, lacks(lack)});
    note_closest(lack, closest);
  }
  std::ranges::stable_sort(outcome.plans, {}, [](const Priced& p) {
    return std::pair{p.estimate, p.spec};
  });
  outcome.all = outcome.plans;
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (tried[i])
      for (Priced near : tried[i]->front()) {
        if (is_built(problem.schedules[i])) near.order = tried[i]->schedule();
        outcome.front.push_back(std::move(near));
      }
  outcome.front.insert(outcome.front.begin(), outcome.plans.begin(), outcome.plans.end());
  outcome.front = pareto_front(std::move(outcome.front), problem.memory_limit);
  for (std::size_t i = options.keep; i < outcome.plans.size(); ++i)
    outcome.rejected.push_back({outcome.plans[i].spec, slower_by(outcome.plans[i].estimate -
                                                                 outcome.plans.front().estimate)});
  outcome.plans.resize(std::min(outcome.plans.size(), options.keep));
  if (outcome.plans.empty() && closest) outcome.infeasible = std::move(closest);
  if (outcome.infeasible) {
    const auto looked_at_all = [](const auto& candidates) {
      return !candidates || candidates->unsure() == std::numeric_limits<double>::infinity();
    };
    outcome.infeasible->proven =
        std::ranges::all_of(tried, looked_at_all) &&
        std::ranges::all_of(problem.schedules, [&](const auto& spec) {
          return !is_built(spec) || one_microbatch(problem, spec, search).nothing_fits;
        });
  }
  prove(problem, tried, every, options, outcome);
  return outcome;
}

}  // namespace pfeife
