// Cuts of one schedule judged in full: lowered, priced and weighed by the exact rules.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "planner/search/price/cut_model.h"
#include "planner/search/price/found_plans.h"
#include "planner/search/price/price.h"
#include "planner/search/problem.h"

namespace pfeife {

class PlanJudge {
 public:
  /// Keeps references to `model` and `problem`.
  PlanJudge(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
            const Placement& placement, Schedule compute_only);

  const ScheduleSpec& spec() const { return spec_; }
  const Placement& placement() const { return placement_; }
  /// Compute-only.
  Schedule schedule() const;
  /// Makes it anew from the spec whenever it is asked for: hundreds of large ones fill the memory.
  void forget_schedule() { schedule_.reset(); }

  /// What is chosen, and what the problem recomputes whatever is chosen.
  Activations activations(std::vector<bool> stages, std::vector<LayerRange> blocks = {}) const;
  /// Received late if the prices do not fit otherwise. If nothing fits, the least peaks that are
  /// needed, or what is reserved where that alone does not fit. Tells `found` of what may fit in
  /// rows that are not known. `layers`: the model's, or those that blocks are chosen of.
  Prices prices(const Cuts& cuts, const Activations& activations, const Layers& layers,
                FoundPlans& found);
  Prices prices(const Cuts& cuts, const Activations& activations, FoundPlans& found) {
    return prices(cuts, activations, model_.layers(), found);
  }
  /// The same by MemoryRule::Lifetimes if it fits; else nullopt, and the peaks in `peak_memory`.
  std::optional<Prices> fitting(const Cuts& cuts, const Activations& activations, FoundPlans& found,
                                std::vector<Bytes>& peak_memory);
  bool fits(const std::vector<Bytes>& peak_memory) const {
    return pfeife::fits(peak_memory, problem_.memory_limit);
  }

  struct Counts {
    std::size_t judged = 0;
    std::size_t reserve_too_much = 0;  ///< of these: what is allocated fits
  };
  const Counts& counts() const { return counts_; }
  Counts take_counts() { return std::exchange(counts_, {}); }
  void add(const Counts& more) {
    counts_.judged += more.judged, counts_.reserve_too_much += more.reserve_too_much;
  }

 private:
  Prices in_memory(Prices prices, const Cuts& cuts, const Activations& activations,
                   FoundPlans& found);
  std::vector<Bytes> needed(const Choice& choice, const Prices& prices);
  StageCosts stage_costs_of(const Cuts& cuts, const Activations& activations);
  Schedule lowered(const StageCosts& costs) const;

  const CutModel& model_;
  const Problem& problem_;
  ScheduleSpec spec_;
  Placement placement_;
  std::optional<Schedule> schedule_;                      // empty = follows from spec_
  std::optional<std::pair<Cuts, StageCosts>> collected_;  // of the cuts last judged
  Counts counts_;
  /// What a rank allocated, and reserved beside it, that reserved too much: of those the least.
  struct Refused {
    Bytes allocated, more;
  };
  std::vector<std::optional<Refused>> refused_;  // [rank]
  std::size_t played_ = 0;                       // layers of microbatches
};

}  // namespace pfeife
