#include "planner/search/steps/given_cuts.h"

#include <algorithm>
#include <limits>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/parallel.h"
#include "planner/search/joint/joint_outcome.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/orders/every_order.h"
#include "planner/search/pool/pool.h"
#include "planner/search/price/lack.h"

namespace pfeife {

namespace {

using Tried = std::vector<std::unique_ptr<Candidates>>;  // [schedule] nullptr: not of these cuts

/// The proof looks at the cuts with each listed schedule.
std::shared_ptr<const Certificate> certificate(const Problem& listed,
                                               const std::vector<AnyOrder>& any_order,
                                               const std::optional<Bound>& claimed) {
  const std::vector<std::int64_t> all(listed.cuts->stages(), 0);
  CertifiedNode every_cut;
  every_cut.then = CertifiedNode::Then::Each;
  std::vector<CertifiedProof> proofs;
  for (const ScheduleSpec& spec : listed.schedules)
    proofs.push_back({spec, all, {}, {}, {every_cut}});
  std::int64_t bound = claimed ? claimed->time.count() : Certificate::kNothingFits;
  for (const AnyOrder& bounded : any_order)
    if (claimed &&
        std::ranges::find(claimed->schedules, bounded.spec()) != claimed->schedules.end()) {
      proofs.push_back(bounded.proof());
      bound = std::min(bound, static_cast<std::int64_t>(bounded.bound_by_rows()));
    }
  if (proofs.empty() || bound <= 0) return nullptr;
  return std::make_shared<Certificate>(certificate_of(listed, bound, std::move(proofs)));
}

/// Claims what no plan of these cuts is faster than. `every`: [schedule] what came of all its
/// orders.
void prove(const Problem& problem, const Tried& tried, const std::vector<EveryOrder>& every,
           const SearchOptions& options, Pool& pool) {
  const Answer& answer = pool.answer();
  const bool nothing_fits = answer.infeasible && answer.infeasible->proven;
  if (answer.plans.empty() && !nothing_fits) return;
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
    const Priced& fastest = answer.plans.front();
    least = std::min(least, static_cast<double>(fastest.estimate.count()));
    Claim claim = listed_claim(listed, {.time = Nanoseconds{static_cast<std::int64_t>(least)},
                                        .given_cuts = true,
                                        .recompute = problem.recompute,
                                        .schedules = listed.schedules,
                                        .memory_limit = problem.memory_limit});
    pool.leave_out_orders(add_any_order(any_order, fastest, claim));
    pool.claim(std::move(claim));
  }
  if (options.certificate && problem.memory_rule == MemoryRule::Lifetimes)
    pool.prove(certificate(listed, any_order, answer.bound));
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
  Pool pool(problem.memory_limit);
  pool.set_recompute(problem.recompute);
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
  std::vector<Priced> plans, near;
  std::vector<std::optional<Infeasible>> lacking;
  std::vector<Rejected> rejected;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const ScheduleSpec& spec = problem.schedules[i];
    if (!tried[i]) {
      rejected.push_back(
          {spec, impossible(cuts ? stream_all("the given cuts make ", problem.cuts->stages(),
                                              " stages, it needs ", spec.stages())
                                 : illegal_because(problem.layers, *problem.cuts))});
      continue;
    }
    pool.count(tried[i]->evaluated());
    const auto in_order = [&](Priced plan) {
      if (is_built(spec)) plan.order = tried[i]->schedule();
      return plan;
    };
    for (const Priced& plan : tried[i]->front()) near.push_back(in_order(plan));
    if (every[i].faster) {
      plans.push_back(*every[i].faster);
    } else if (tried[i]->best()) {
      plans.push_back(in_order(*tried[i]->best()));
    } else {
      lacking.push_back(tried[i]->closest());
      rejected.push_back({spec, lacks(*tried[i]->closest())});
    }
  }
  std::ranges::stable_sort(plans, {}, &Priced::spec);
  pool.add(std::move(plans));
  pool.add_near(std::move(near));
  for (const std::optional<Infeasible>& lack : lacking) pool.add(lack);
  pool.keep(options.keep);
  const std::vector<Priced>& all = pool.answer().all;
  for (std::size_t i = options.keep; i < all.size(); ++i)
    rejected.push_back({all[i].spec, slower_by(all[i].estimate - all.front().estimate)});
  pool.reject(std::move(rejected));
  if (pool.answer().infeasible) {
    const auto looked_at_all = [](const auto& candidates) {
      return !candidates || candidates->unsure() == std::numeric_limits<double>::infinity();
    };
    pool.prove_infeasible(std::ranges::all_of(tried, looked_at_all) &&
                          std::ranges::all_of(problem.schedules, [&](const auto& spec) {
                            return !is_built(spec) ||
                                   one_microbatch(problem, spec, search).nothing_fits;
                          }));
  }
  prove(problem, tried, every, options, pool);
  return std::move(pool).take();
}

}  // namespace pfeife
