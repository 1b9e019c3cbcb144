#include "planner/search/price/plan_judge.h"

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {

constexpr std::size_t kPlayed = 100000;  ///< layers of microbatches: a tenth of a second or two

PlanJudge::PlanJudge(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                     const Placement& placement, Schedule compute_only)
    : model_(model),
      problem_(problem),
      spec_(spec),
      placement_(placement),
      schedule_(std::move(compute_only)) {}

Schedule PlanJudge::schedule() const { return schedule_ ? *schedule_ : generate(spec_); }

Activations PlanJudge::activations(std::vector<bool> stages, std::vector<LayerRange> blocks) const {
  if (problem_.recompute == Recompute::Full) stages.assign(placement_.stages(), true);
  Activations all{std::move(stages), std::move(blocks), problem_.recompute_except_last};
  return all.recomputes() ? all : Activations{};
}

/// must_fit(). Where much was played already, a rank that allocates no less than a refused one is
/// taken to reserve as much more: thousands of cuts may be judged where none fit.
std::vector<Bytes> PlanJudge::needed(const Choice& choice, const Prices& prices) {
  if (!problem_.allocator || !fits(prices.peak_memory)) return prices.peak_memory;
  refused_.resize(placement_.ranks());
  std::vector<Bytes> needed = prices.peak_memory;
  if (played_ > kPlayed) {
    for (std::size_t r = 0; r < needed.size(); ++r)
      if (refused_[r] && needed[r] >= refused_[r]->allocated) needed[r] += refused_[r]->more;
    if (!fits(needed)) return needed;
  }
  needed = must_fit(problem_, choice, prices);
  if (needed != prices.peak_memory) played_ += problem_.layers->size() * spec_.microbatches;
  for (std::size_t r = 0; r < needed.size(); ++r) {
    const Bytes allocated = prices.peak_memory[r];
    if (needed[r] > problem_.memory_limit[r] &&
        (!refused_[r] || allocated < refused_[r]->allocated))
      refused_[r] = {allocated, needed[r] - allocated};
  }
  return needed;
}

Prices PlanJudge::in_memory(Prices prices, const Cuts& cuts, const Activations& activations,
                            FoundPlans& found) {
  if (problem_.memory_rule != MemoryRule::Lifetimes) return prices;
  const Choice choice{spec_, model_.partition(cuts), placement_, activations};
  std::vector<Bytes> needed = this->needed(choice, prices);
  if (fits(needed)) return prices;
  if (!fits(prices.peak_memory)) needed = least_peak_memory(prices, placement_);
  if (fits(prices.peak_memory) || fits(needed)) {
    if (problem_.receives == Receives::AtNeed) {
      Prices late = received_late(prices, placement_);
      std::vector<Bytes> needed_late = this->needed(choice, late);
      if (fits(needed_late)) return late;
      if (fits(late.peak_memory)) needed = std::move(needed_late);
    }
    // Bounds and proofs know what is allocated.
    found.note_unsure(static_cast<double>(prices.estimate.count()));
  }
  if (!fits(needed)) {
    counts_.reserve_too_much += fits(prices.peak_memory);
    prices.peak_memory = std::move(needed);
  }
  return prices;
}

Prices PlanJudge::prices(const Cuts& cuts, const Activations& activations, const Layers& layers,
                         FoundPlans& found) {
  ++counts_.judged;
  if (activations.blocks.empty() && problem_.memory_rule == MemoryRule::Lifetimes) {
    StageCosts costs = stage_costs_of(cuts, activations);
    Schedule lowered = this->lowered(costs);
    return in_memory(evaluate_lowered(std::move(costs), std::move(lowered), placement_), cuts,
                     activations, found);
  }
  const auto by = [&](const SummedLayers& sums) {
    return evaluate(sums, model_.cluster(), schedule(), placement_, model_.partition(cuts),
                    problem_.memory_rule, activations, problem_.norm);
  };
  return in_memory(activations.blocks.empty() ? by(model_.sums()) : by(layers), cuts, activations,
                   found);
}

std::optional<Prices> PlanJudge::fitting(const Cuts& cuts, const Activations& activations,
                                         FoundPlans& found, std::vector<Bytes>& peak_memory) {
  ++counts_.judged;
  StageCosts costs = stage_costs_of(cuts, activations);
  Schedule lowered = this->lowered(costs);
  peak_memory = pfeife::peak_memory(with_receives_at_need(lowered), costs, placement_);
  if (!fits(peak_memory)) return std::nullopt;
  Prices prices = in_memory(evaluate_lowered(std::move(costs), std::move(lowered), placement_),
                            cuts, activations, found);
  if (fits(prices.peak_memory)) return prices;
  peak_memory = std::move(prices.peak_memory);
  return std::nullopt;
}

/// The choices of recomputed stages for the same cuts share what takes long.
StageCosts PlanJudge::stage_costs_of(const Cuts& cuts, const Activations& activations) {
  if (!collected_ || collected_->first != cuts) {
    const Partition partition = model_.partition(cuts);
    collected_ = {cuts,
                  collected_stage_costs(model_.sums(), partition, placement_, model_.cluster())};
    collected_->second.norm =
        norm_time(model_.layers(), problem_.norm, partition, placement_, model_.cluster());
  }
  return with_recomputation(collected_->second, activations, placement_, model_.cluster());
}

Schedule PlanJudge::lowered(const StageCosts& costs) const {
  return lower(schedule_ ? *schedule_ : generate(spec_), costs, placement_);
}

}  // namespace pfeife
