#include "experiments/plans/memory_contents.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

std::vector<MemoryContents> memory_contents(const Plan& plan, const StageCosts& costs,
                                            const std::vector<Bytes>& copies) {
  std::vector<MemoryContents> ranks;
  for (std::size_t r = 0; r < plan.schedule.ranks(); ++r)
    ranks.push_back(contents_of(plan, RankId{r}, costs, copies));
  return ranks;
}

}  // namespace pfeife
