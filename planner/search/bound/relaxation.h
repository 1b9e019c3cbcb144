// Weights for the bound of a region: the master's paths and limits, priced where its loads are.
//
// Rows of the master are longest paths and limits: what a rank holds at a moment is not above its
// memory (LiveMemory). Its duals are the weights that CutBound takes. Rows
// only choose weights, so they may be approximate: work, latencies and bytes are taken at the cuts
// that the master's loads come closest to, and rise with the load at the model's mean rates.
#pragma once

#include <vector>

#include "planner/search/bound/cut_bound.h"
#include "planner/search/bound/path_master.h"
#include "planner/search/bound/row_weights.h"
#include "planner/search/price/candidate.h"

namespace pfeife {

class Relaxation {
 public:
  /// The master's cost grows with the cube of the stages: with more than these, budgets are
  /// smaller.
  static constexpr std::size_t kFewStages = 48;
  /// Keeps references; `record` != nullptr: certified() is filled.
  Relaxation(Candidates& candidates, CutBound& cut_bound, ProofRecord* record);

  /// Takes over the rows of the same schedule's.
  void take_rows(const Relaxation& other);

  /// Moves to the region that `cut_bound` is in.
  void enter();
  /// Raises the master's value until no row is violated by more than `tolerance` of it, or the
  /// pivots are spent.
  void solve(double tolerance);
  /// Takes new rates around the master's loads.
  void linearise();

  /// The master's weights as whole numbers, or those that show that its limits contradict each
  /// other.
  void weigh();
  /// Instead, after a contradiction that left cuts: the weights before it, and `more` of those that
  /// contradict.
  void weigh_despite(double more);
  const RowWeights& weights() const { return weights_; }
  /// visit(row, weight) of what the master's weights are of.
  template <class Visit>
  void each_weighted_row(const Visit& visit) const {
    for (const auto& [number, weight] : master_.weights()) visit(rows_[number], weight);
  }

  /// Learns from cuts: their longest path and the limit that they break most. False if the master
  /// knew.
  bool learn(const Cuts& cuts);

  /// The cuts of the region that come closest to the master's loads, at the last linearise(). Not
  /// always in order at their end.
  const Cuts& nearest() const { return nearest_; }
  std::span<const double> loads() const { return master_.loads(); }
  /// About how many ns all calls together have taken: counted, not measured.
  double work() const { return work_; }
  /// Load of a stage on its kind per load in the master.
  double scale(std::size_t stage) const { return scale_[stage]; }
  /// What a ns of load of the stage on its kind weighs in `weights`.
  double price(const RowWeights& weights, std::size_t stage) const;

 private:
  static constexpr std::size_t kAmounts = kWorks + kHolds;
  const std::vector<std::int32_t>& count(const PathCounts<std::int32_t>& counts,
                                         std::size_t amount) const {
    return amount < kWorks ? counts.work[amount] : counts.held[amount - kWorks];
  }
  const std::vector<double>& prefix(std::size_t amount, std::size_t stage) const;
  void seed();
  void set_constants();
  void forget();
  double constant_of(const BoundRow& row) const;
  double temporary(std::size_t rank, const LiveMoment& moment) const;
  std::size_t add(BoundRow row);
  std::size_t add_limit(std::size_t rank, const LiveMoment& moment);
  std::optional<std::size_t> worst_limit(double tolerance);
  std::optional<std::size_t> price_row(double tolerance);
  bool always_exists(const PathCounts<std::int32_t>& path) const;
  void weigh(const std::vector<PathMaster::Weight>& weights, double factor);

  Candidates& candidates_;
  CutBound& cut_bound_;
  ProofRecord* record_;
  RowWeigher weigher_;
  std::size_t stages_;
  PathMaster master_;
  std::vector<BoundRow> rows_;
  std::vector<double> scale_;  // [stage] load on its kind / load in the master
  std::vector<std::array<double, kAmounts>> share_;  // [stage] amount / load in the master
  std::vector<std::array<double, kAmounts>>
      level_;                               // [stage] amount beyond share * load at present
  std::vector<CutCosts::Latency> latency_;  // [boundary] of the present region
  Cuts nearest_;
  bool contradiction_ = false;
  double work_ = 0;
  RowWeights weights_;
  std::vector<double> fractional_, ends_;
};

}  // namespace pfeife
