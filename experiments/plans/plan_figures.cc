#include "experiments/plans/plan_figures.h"

#include "experiments/plans/case_limits.h"
#include "experiments/plans/memory_contents.h"
#include "planner/cost/estimate/reference_memory.h"
#include "planner/cost/stages/stage_costs.h"

namespace pfeife {
namespace {

const char* peak_name(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return "fp32";
    case Precision::Tf32:
      return "tf32";
    case Precision::Bf16Amp:
      return "bf16";
    case Precision::Fp16Amp:
      return "fp16";
  }
  return "";
}

/// The sum over all devices of the plan; nothing if one lists none.
std::optional<FlopsPerSecond> published_peak(const Plan& plan, const Cluster& cluster) {
  FlopsPerSecond sum;
  for (const DeviceId device : plan.placement.device_of_rank) {
    const auto& peaks = cluster.kind(device).peak;
    const auto peak = peaks.find(peak_name(plan.training.precision));
    if (peak == peaks.end()) return std::nullopt;
    sum.value += peak->second.value;
  }
  return sum;
}

void add_rate(const Evaluation& plan, const EvaluatedCase& evaluated, const Trace& trace,
              PlanFigures& figures) {
  const double step = seconds(step_time(trace));
  if (evaluated.work == nullptr || step <= 0) return;
  const double rate =
      static_cast<double>(plan.inputs.config->microbatches) * evaluated.work->flops.value / step;
  figures.rate = FlopsPerSecond{rate / static_cast<double>(trace.ranks)};
  if (evaluated.published == nullptr) return;
  if (const auto peak = published_peak(plan.plan, *evaluated.published))
    figures.utilization = rate / peak->value;
}

}  // namespace

std::vector<Bytes> autocast_copies(const Evaluation& plan, const ModelWork* work) {
  const Layers& layers = *plan.inputs.layers;
  if (work == nullptr || work->autocast_copy.size() != layers.storages.size()) return {};
  Layers without = layers;
  for (std::size_t i = 0; i < without.storages.size(); ++i)
    if (work->autocast_copy[i]) without.storages[i].bytes = Bytes{0};
  const StageCosts costs = stage_costs(without, plan.plan, *plan.inputs.cluster);
  std::vector<Bytes> copies;
  for (std::size_t s = 0; s < costs.stages.size(); ++s)
    copies.push_back(plan.costs.stages[s].saved - costs.stages[s].saved);
  return copies;
}

std::vector<MemoryContents> memory_of(const Evaluation& plan, const ModelWork* work) {
  std::vector<MemoryContents> memory =
      memory_contents(plan.plan, plan.costs, autocast_copies(plan, work));
  for (std::size_t r = 0; r < plan.need.reserved.size(); ++r) {
    memory[r].segments = plan.need.reserved[r] - plan.need.allocated[r];
    memory[r].context = kContext;
    memory[r].communicators = communicators(*plan.inputs.config) * kCommunicator;
  }
  return memory;
}

PlanFigures figures_of(const Evaluation& plan, const EvaluatedCase& evaluated, const Trace* trace) {
  PlanFigures figures;
  if (trace != nullptr) {
    figures.span = span(*trace);
    figures.without_optimizer = step_without_optimizer(*trace);
    figures.latency = forward_latency(*trace);
    add_rate(plan, evaluated, *trace, figures);
  }
  figures.reference_peak =
      reference_peak_memory(plan.plan.schedule, plan.costs, plan.plan.placement,
                            largest_temporaries(*plan.inputs.layers, plan.plan.partition));
  figures.memory = memory_of(plan, evaluated.work);
  return figures;
}

}  // namespace pfeife
