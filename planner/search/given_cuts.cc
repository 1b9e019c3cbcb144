#include "planner/search/given_cuts.h"

#include <algorithm>

#include "planner/ir/error.h"
#include "planner/search/built_orders.h"
#include "planner/search/lack.h"
#include "planner/search/parallel.h"
#include "planner/search/pareto.h"

namespace pfeife {

SearchOutcome choose_schedule(const Problem& problem, const SearchOptions& options) {
  SearchOutcome outcome;
  std::optional<Infeasible> closest;
  const CutModel model(problem.layers, problem.cluster, problem.memory_rule,
                       problem.recompute == Recompute::Full);
  const std::optional<Cuts> cuts = model.cuts(*problem.cuts);
  std::vector<std::unique_ptr<Candidates>> tried(problem.schedules.size());
  parallel_for(tried.size(), options.threads, [&](std::size_t i) {
    if (!cuts || problem.schedules[i].stages() != problem.cuts->stages()) return;
    if (is_built(problem.schedules[i])) {
      tried[i] = build_on_cuts(model, problem, problem.schedules[i], *cuts);
      return;
    }
    tried[i] = std::make_unique<Candidates>(model, problem, problem.schedules[i]);
    tried[i]->offer(*cuts, tried[i]->time(*cuts));
  });
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const ScheduleSpec& spec = problem.schedules[i];
    if (!tried[i]) {
      outcome.rejected.push_back(
          {spec, cuts ? stream_all("the given cuts make ", problem.cuts->stages(),
                                   " stages, it needs ", spec.stages())
                      : illegal_because(problem.layers, *problem.cuts)});
      continue;
    }
    outcome.candidates += tried[i]->evaluated();
    if (tried[i]->best()) {
      outcome.plans.push_back(*tried[i]->best());
      if (is_built(spec)) outcome.plans.back().order = tried[i]->schedule();
      continue;
    }
    const Infeasible& lack = *tried[i]->closest();
    outcome.rejected.push_back({spec, lack_text(lack)});
    note_closest(lack, closest);
  }
  std::ranges::stable_sort(outcome.plans, {}, [](const PlannedSchedule& p) {
    return std::pair{p.estimate, p.spec};
  });
  outcome.front = pareto_front(outcome.plans);
  for (std::size_t i = options.keep; i < outcome.plans.size(); ++i)
    outcome.rejected.push_back(
        {outcome.plans[i].spec,
         to_string(outcome.plans[i].estimate - outcome.plans.front().estimate) + " slower"});
  outcome.plans.resize(std::min(outcome.plans.size(), options.keep));
  if (outcome.plans.empty() && closest) outcome.infeasible = std::move(closest);
  if (outcome.infeasible)
    outcome.infeasible->proven = std::ranges::all_of(problem.schedules, [&](const auto& spec) {
      return !is_built(spec) || one_microbatch(problem, spec).nothing_fits;
    });
  return outcome;
}

}  // namespace pfeife
