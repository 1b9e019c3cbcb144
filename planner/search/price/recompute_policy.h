// What cuts of one schedule recompute, in three ways: what the problem says of all stages, stages
// chosen for the cuts, or blocks chosen for them. Each knows what cuts are worth with it, and
// judges cuts with it.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "planner/search/price/block_choice.h"
#include "planner/search/price/candidate_parts.h"
#include "planner/search/price/recomputation.h"

namespace pfeife {

/// Nothing or everything.
class FixedRecomputation {
 public:
  /// `apart`: all stages are recomputed but for the last microbatch, which the times of layers do
  /// not say.
  FixedRecomputation(std::size_t stages, bool apart) {
    if (apart) all_.assign(stages, true);
  }

  /// `parts.times` without recomputation are not those of plans.
  bool adds_time() const { return !all_.empty(); }
  double weigh(CandidateParts& parts, const Cuts& cuts, double time) const;
  bool offer(CandidateParts& parts, const Cuts& cuts, double time) const;
  void learn(const FixedRecomputation&) {}

 private:
  std::vector<bool> all_;  // [stage] true; else empty
};

/// Stages, chosen so that the cuts fit. Where more is recomputed than every choice must, a better
/// choice may exist: FoundPlans::unsure says how good it may be.
class ChosenStages {
 public:
  /// `own_margin`: it keeps what the exact rule was found to add to its reckoning of memory apart
  /// from CutMemory::above.
  ChosenStages(const Schedule& compute_only, const Placement& placement,
               const std::vector<Bytes>& memory_limit, bool own_margin);

  double weigh(CandidateParts& parts, const Cuts& cuts, double time);
  bool offer(CandidateParts& parts, const Cuts& cuts, double time);
  void learn(const ChosenStages& other) { margin_ = other.margin_; }

 private:
  std::vector<double>& margin(CandidateParts& parts) {
    return margin_.empty() ? parts.memory.above() : margin_;
  }
  Recomputation::Choice choose(CandidateParts& parts, const Cuts& cuts);
  bool try_all(CandidateParts& parts, const Cuts& cuts, const std::vector<bool>& forced) const;
  bool try_more(CandidateParts& parts, const Cuts& cuts, std::vector<bool> chosen,
                const std::vector<bool>& forced, double least);

  Recomputation recomputation_;
  std::vector<double> margin_;  // [rank]; empty = CutMemory::above
};

/// Blocks, chosen so that the cuts fit; also whole stages, where blocks are all of the model.
class ChosenBlocks {
 public:
  ChosenBlocks(const CutModel& model, const Problem& problem, const Schedule& compute_only,
               const Placement& placement);

  double weigh(CandidateParts& parts, const Cuts& cuts, double time);
  bool offer(CandidateParts& parts, const Cuts& cuts, double time);
  void learn(const ChosenBlocks& other);

  /// Choices made.
  std::size_t chosen() const { return chosen_; }
  std::size_t take_chosen() { return std::exchange(chosen_, 0); }
  void add_chosen(std::size_t count) { chosen_ += count; }

 private:
  bool offer_blocks(CandidateParts& parts, const Cuts& cuts, double time);
  bool try_all(CandidateParts& parts, const Cuts& cuts,
               const std::vector<LayerRange>& blocks) const;

  BlockChoice choice_;
  std::optional<ChosenStages> stages_;
  std::vector<double> margin_;  // [rank] exact peak - BlockChoice's, last judged
  std::size_t chosen_ = 0;
};

using RecomputePolicy = std::variant<FixedRecomputation, ChosenStages, ChosenBlocks>;
RecomputePolicy recompute_policy(const CutModel& model, const Problem& problem,
                                 const Schedule& compute_only, const Placement& placement);

}  // namespace pfeife
