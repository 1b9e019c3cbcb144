// The best weights that a region's bound can have, closely.
//
// The bound is the smallest weighted length over all cuts, so the best weights are one player's
// strategy in a game: one player mixes paths, the other mixes cuts, and a path's length at a
// mixture of cuts is the mean of its lengths. Both have exact answers: dynamic programming finds
// the cuts that are shortest for weights, one pass through the schedule the path that is longest
// for mean times. PathMaster solves the game of the cuts and paths found so far (its "loads" are
// the shares of the cuts), each answer joins it. Unlike Relaxation's master, whose loads may be
// any, this knows only cuts that exist; it takes tens of minima instead of a few. Weights half way
// to the best ones so far keep the answers from jumping (Wentges 1997).
#pragma once

#include <span>
#include <vector>

#include "planner/search/candidate.h"
#include "planner/search/cut_bound.h"
#include "planner/search/path_master.h"
#include "planner/search/proof_record.h"

namespace pfeife {

class CutMixture {
 public:
  struct Path {
    PathCounts<std::int32_t> counts;
    CertifiedPath turns;  ///< if recorded
    double weight = 0;    ///< of the best weights so far; they sum to 1
  };
  /// Of the region that `cut_bound` is in. Keeps references. `weight_sum`: what whole-number
  /// weights are to sum to, about. `record` != nullptr: Weights::certified is filled.
  CutMixture(Candidates& candidates, CutBound& cut_bound, double weight_sum, ProofRecord* record);

  /// Cuts and paths to begin with; at least one of the cuts. Paths that are not sure to exist in
  /// the region must not be among them.
  void add_cuts(const Cuts& cuts);
  void add_path(Path path);

  /// Whole numbers, as CutBound takes them.
  struct Weights {
    PathCounts<double> counts;
    double sum = 0, constant = 0;  ///< of the weights; of the weighted sum
    CertifiedWeights certified;
  };
  /// The minimum of new weights. nullopt: no cuts are left in the region, or no others were found.
  std::optional<CutBound::Minimum> next();
  /// The weights of the last next().
  const Weights& weights() const { return weights_; }
  /// Says that these are the best so far.
  void keep_weights();
  /// No weights give a higher bound than this (ns), about: what the cuts found so far allow.
  double value() const { return value_; }

  /// About how many ns all calls together have taken, minima left out: counted, not measured.
  double work() const { return work_; }

 private:
  struct Column {
    Cuts cuts;
    std::vector<double> durations;
  };
  std::vector<double> durations(const Cuts& cuts) const;
  double length(const PathCounts<std::int32_t>& counts, const std::vector<double>& durations) const;
  double scaled(double length) const { return (length - base_) / unit_; }
  bool solve();
  bool price_path();
  bool known(const Cuts& cuts) const;
  void weigh(double share_of_best);

  Candidates& candidates_;
  CutBound& cut_bound_;
  ProofRecord* record_;
  double target_sum_;
  PathMaster master_;
  std::vector<Path> paths_;
  std::vector<Column> columns_;
  double base_ = 0, unit_ = 1;  // ns: lengths in the master are (length - base) / unit
  std::vector<double> tried_;   // [path] weights of the last answer
  Weights weights_;
  double value_ = 0;
  std::vector<double> mean_, ends_;
  double work_ = 0;
};

}  // namespace pfeife
