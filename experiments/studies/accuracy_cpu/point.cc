#include "experiments/studies/accuracy_cpu/point.h"

#include "experiments/measure/measure.h"
#include "experiments/plans/plan_case.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

bool computes(const Event& event) {
  return event.kind == TaskKind::Compute || event.kind == TaskKind::Optimizer;
}

}  // namespace

Point planned(CaseConfig& config, Inputs& inputs) {
  const CaseInputs of{&config, &inputs.layers(config), &inputs.cluster(config)};
  Point point{.evaluated = with_places(config, [&] {
                check_case(of);
                return plan_case(of, inputs.layers_of(config), 1, 1);
              })};
  point.evaluated.baselines.clear();
  if (!config.simulation.jitter)
    throw ConfigError(config.place(""), "the profile says nothing of how times vary");
  if (!point.first().possible())
    throw ConfigError(config.place(""), config.name + ": " + point.first().reason);
  return point;
}

void predict_pooled(Point& point, const CaseConfig& config, Inputs& inputs) {
  const CaseInputs of{&config, &inputs.layers(config), &inputs.cluster(config)};
  const Evaluation& first = point.first();
  point.pooled = estimated_plan(of, first.origin, first.name, first.plan, true);
}

void measure(Point& point, const std::filesystem::path& folder) {
  Evaluation& plan = point.first();
  measure_plan(plan, folder / plan.inputs.config->name / "planned");
  if (!plan.measurement) throw RuntimeFault(plan.inputs.config->name + ": " + plan.measure_failure);
  for (const MeasuredStep& step : plan.measurement->steps)
    if (step.counts) point.steps.push_back(step.time);
  point.rounds.push_back(plan.measurement->step());
  point.busy.push_back(busy_time(plan.measurement->trace));
  point.peak.resize(plan.plan.peak_memory.size());
  for (std::size_t r = 0; r < plan.measurement->peak_memory.size(); ++r)
    point.peak[r] = std::max(point.peak[r], plan.measurement->peak_memory[r]);
}

Nanoseconds busy_time(const Trace& trace) {
  Nanoseconds sum{0};
  for (const Event& event : trace.events)
    if (computes(event)) sum += event.end - event.start;
  return sum;
}

}  // namespace pfeife
