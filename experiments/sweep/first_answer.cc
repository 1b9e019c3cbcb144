#include "experiments/sweep/first_answer.h"

#include <fmt/format.h>

#include "planner/ir/result/result_engine.h"
#include "plots/screen/columns.h"

namespace pfeife {
namespace {

bool is_computed(const CaseConfig& config, Inputs& inputs, const SweepOptions& options) {
  return find_record(options.out / config.name, inputs.digest(config)).has_value();
}

/// How much faster the chosen plan is than in `before`, as a fraction; 0 if it is not.
double faster_by(const CaseRecord& record, const CaseRecord& before) {
  const TraceSource engine = compared_engine(record);
  const auto now = time_of(record.plans.front().row, engine);
  const auto then = time_of(before.plans.front().row, engine);
  return now && then && *now < *then ? seconds(*then) / seconds(*now) - 1 : 0;
}

}  // namespace

std::optional<Experiment> first_answer(const Experiment& experiment, Inputs& inputs,
                                       const SweepOptions& options, std::size_t most) {
  Experiment first = experiment;
  std::size_t open = 0;
  for (CaseConfig& config : first.cases) {
    if (!config.plan.searched() || config.plan.reference || config.plan.iterations != 0) continue;
    if (!options.force && is_computed(config, inputs, options)) continue;
    config.plan.iterations = kFirstEffort;
    ++open;
  }
  if (open == 0 || open > most) return std::nullopt;
  return first;
}

Experiment best_so_far(const Experiment& experiment, const Experiment& first, Inputs& inputs,
                       const SweepOptions& options) {
  Experiment best = experiment;
  for (std::size_t i = 0; i < best.cases.size(); ++i)
    if (!is_computed(best.cases[i], inputs, options)) best.cases[i] = first.cases[i];
  return best;
}

std::vector<std::string> still_moving(const SweepResult& result, const Experiment& computed,
                                      const Experiment& experiment) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < computed.cases.size(); ++i) {
    if (computed.cases[i].plan.iterations == experiment.cases[i].plan.iterations) continue;
    const auto record = std::ranges::find(result.cases, computed.cases[i].name, &CaseRecord::name);
    if (record == result.cases.end()) continue;
    const ResultRow& row = record->plans.front().row;
    if (row.gap != 0.0 || row.simulate_gap.value_or(0) != 0.0) names.push_back(record->name);
  }
  return names;
}

std::string gained(const SweepResult& first, const SweepResult& result, double first_seconds) {
  std::size_t faster = 0;
  double most = 0;
  const CaseRecord* best = nullptr;
  for (const CaseRecord& record : result.cases) {
    const auto before = std::ranges::find(first.cases, record.name, &CaseRecord::name);
    const double by = before == first.cases.end() ? 0 : faster_by(record, *before);
    faster += by > 0 ? 1 : 0;
    if (by > most) most = by, best = &record;
  }
  if (best == nullptr) return fmt::format("no plan is faster than after {:.0f} s", first_seconds);
  const bool several = result.cases.size() > 1;
  return fmt::format("{}{}: {:.1f} % since {:.0f} s{}", plan_name(best->plans.front()),
                     several ? " (" + best->name + ")" : "", 100 * most, first_seconds,
                     several ? fmt::format("; {} of {} plans are faster, none by more", faster,
                                           result.cases.size())
                             : "");
}

}  // namespace pfeife
