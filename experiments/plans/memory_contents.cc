#include "experiments/plans/memory_contents.h"

#include <algorithm>

#include "planner/cost/estimate/memory.h"

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
  for (std::vector<StageCost>* stages : {&costs.stages, &costs.last.stages})
    for (StageCost& stage : *stages) stage.saved = stage.offloaded = Bytes{0};
  for (std::vector<StageValue>* values : {&costs.values, &costs.last.values})
    for (StageValue& value : *values) {
      value.saved_by_sender = false;
      value.saved_by_receiver.assign(value.to.size(), false);
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
    });
  };
  found.temporary = without_each(
      [](StageCost& s) { s.temporary = {}, s.recomputed = s.forward_again = Bytes{0}; });
  found.held_for_weights = without_each([](StageCost& s) { s.weight_saved = Bytes{0}; });
  found.autocast_copies = without([&](StageCosts& all) {
    for (std::size_t s = 0; s < copies.size(); ++s) all.stages[s].saved -= copies[s];
  });
  found.saved = without(save_nothing);
  found.optimizer = without_each([](StageCost& s) { s.optimizer_state = Bytes{0}; });
  found.gradients = without_each([](StageCost& s) { s.gradients = Bytes{0}; });
  found.parameters = without_each([](StageCost& s) { s.parameters = Bytes{0}; });
  found.buffers = left;
  return found;
}

}  // namespace

std::vector<MemoryContents> memory_contents(const Plan& plan, const StageCosts& costs,
                                            const std::vector<Bytes>& copies) {
  std::vector<MemoryContents> ranks;
  for (std::size_t r = 0; r < plan.schedule.ranks(); ++r)
    ranks.push_back(contents_of(plan, RankId{r}, costs, copies));
  return ranks;
}

}  // namespace pfeife
