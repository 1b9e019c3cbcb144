#include "experiments/plans/plan_figures.h"

#include <algorithm>
#include <cmath>

#include "experiments/plans/case_limits.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/estimate/reference_memory.h"
#include "planner/cost/stages/stage_costs.h"

namespace pfeife {
namespace {

/// Memory of the rank while a cell runs.
Bytes level(const Plan& plan, RankId rank, const StageCosts& costs, std::optional<std::size_t> at) {
  const MemoryCurve curve = memory(plan.schedule, rank, costs, plan.placement);
  return at ? curve.steps[*at].during : curve.fixed;
}

std::optional<std::size_t> highest_cell(const MemoryCurve& curve) {
  const auto at = std::ranges::max_element(curve.steps, {}, &MemoryStep::during);
  if (at == curve.steps.end() || at->during <= curve.fixed) return std::nullopt;
  return static_cast<std::size_t>(at - curve.steps.begin());
}

/// Values that cross, without what the stages save of them: only while received or to be sent.
void save_nothing(StageCosts& costs) {
  const auto drop = [](std::vector<StageCost>& stages, std::vector<StageValue>& values) {
    for (StageCost& stage : stages) stage.saved = stage.offloaded = stage.head_saved = Bytes{0};
    for (StageValue& value : values) {
      value.saved_by_sender = false;
      value.saved_by_receiver.assign(value.to.size(), false);
    }
  };
  drop(costs.stages, costs.values), drop(costs.last.stages, costs.last.values);
  for (StageCosts::Slice& kind : costs.kinds) drop(kind.stages, kind.values);
}

/// Saved bytes without the copies that autocast makes: of microbatches that differ in proportion.
void drop_copies(const std::vector<Bytes>& copies, StageCosts& costs) {
  for (std::size_t s = 0; s < copies.size(); ++s) {
    Bytes& saved = costs.stages[s].saved;
    const double share = saved > Bytes{0} ? static_cast<double>((saved - copies[s]).value) /
                                                static_cast<double>(saved.value)
                                          : 1;
    saved -= copies[s];
    for (StageCosts::Slice& kind : costs.kinds)
      kind.stages[s].saved =
          Bytes{std::llround(share * static_cast<double>(kind.stages[s].saved.value))};
  }
}

MemoryContents contents_of(const Plan& plan, RankId rank, StageCosts costs,
                           const std::vector<Bytes>& copies) {
  const auto at = highest_cell(memory(plan.schedule, rank, costs, plan.placement));
  MemoryContents found;
  Bytes left = level(plan, rank, costs, at);
  // Changes the costs and returns what the memory is smaller by.
  const auto without = [&](const auto& change) {
    change(costs);
    const Bytes now = level(plan, rank, costs, at), taken = left - now;
    left = now;
    return taken;
  };
  const auto without_each = [&](auto drop) {
    return without([&](StageCosts& all) {
      std::ranges::for_each(all.stages, drop), std::ranges::for_each(all.last.stages, drop);
      for (StageCosts::Slice& kind : all.kinds) std::ranges::for_each(kind.stages, drop);
    });
  };
  found.temporary = without_each([](StageCost& s) {
    s.temporary = {}, s.recomputed = s.forward_again = s.head_temporary = Bytes{0};
  });
  found.held_for_weights = without_each([](StageCost& s) { s.weight_saved = Bytes{0}; });
  found.autocast_copies = without([&](StageCosts& all) { drop_copies(copies, all); });
  found.saved = without(save_nothing);
  found.optimizer = without_each([](StageCost& s) { s.optimizer_state = Bytes{0}; });
  found.gradients = without_each([](StageCost& s) { s.gradients = Bytes{0}; });
  found.parameters = without_each([](StageCost& s) { s.parameters = Bytes{0}; });
  found.buffers = left;
  return found;
}

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

std::vector<MemoryContents> memory_contents(const Plan& plan, const StageCosts& costs,
                                            const std::vector<Bytes>& copies) {
  std::vector<MemoryContents> ranks;
  for (std::size_t r = 0; r < plan.schedule.ranks(); ++r)
    ranks.push_back(contents_of(plan, RankId{r}, costs, copies));
  return ranks;
}

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
