// The best weights that a region's bound can have, closely.
//
// The bound is the smallest weighted sum of rows over all cuts, so the best weights are one
// player's strategy in a game: one player mixes paths (and limits of memory), the other mixes cuts,
// and a path's length at a mixture of cuts is the mean of its lengths. Both have exact answers:
// dynamic programming finds the cuts that are shortest for weights, one pass through the schedule
// the path that is longest for mean times. PathMaster solves the game of the cuts and rows found so
// far (its "loads" are the shares of the cuts), each answer joins it. Unlike Relaxation's master,
// whose loads may be any, this knows only cuts that exist; it takes tens of minima instead of a
// few. Weights half way to the best ones so far keep the answers from jumping (Wentges 1997).
//
// Among the cuts is one that does not exist: as slow as the time that is to be beaten, and within
// all limits. With it there is a mixture that meets the limits, and a bound above that time is none
// that is asked for.
#pragma once

#include <vector>

#include "planner/search/bound/cut_bound.h"
#include "planner/search/bound/path_master.h"
#include "planner/search/bound/row_weights.h"
#include "planner/search/price/candidate.h"

namespace pfeife {

class CutMixture {
 public:
  /// For the region that `cut_bound` is in. Keeps references. `to_beat` (ns): bounds up to it
  /// matter. `record` != nullptr: RowWeights::certified is filled.
  CutMixture(Candidates& candidates, CutBound& cut_bound, double to_beat, ProofRecord* record);

  /// Cuts and rows to begin with. `weight`: of the best weights so far.
  /// Paths that are not sure to exist in the region must not be among them.
  void add_cuts(const Cuts& cuts);
  void add_row(BoundRow row, double weight);

  /// The minimum of new weights. Where it is of cuts that are known, no weights are better, and
  /// there are none to come. nullopt: that was so, or no cuts are left in the region.
  std::optional<CutBound::Minimum> next();
  /// The weights of the last next().
  const RowWeights& weights() const { return weights_; }
  /// Says that these are the best so far.
  void keep_weights();
  /// No weights give a higher bound than this (ns), about: what the cuts found so far allow.
  double value() const { return value_; }

  /// A stage's load (ns on its kind) over the cuts of the last mixture that exist.
  struct Spread {
    double mean = 0, distance = 0;  ///< of loads; of loads from their mean, on average
  };
  /// [stage]; empty if none of the cuts has a share.
  std::vector<Spread> spread() const;

  /// About how many ns all calls together have taken, minima left out: counted, not measured.
  double work() const { return work_; }

 private:
  struct Column {
    Cuts cuts;
    std::vector<double> durations;
    std::vector<double> excess;  ///< [limit] bytes above it
  };
  struct Row {
    BoundRow row;
    double weight = 0;  ///< of the best weights so far
  };
  struct Limit {
    std::size_t rank;
    const LiveMoment* moment;
  };
  std::vector<double> durations(const Cuts& cuts) const;
  std::vector<double> excess(const Cuts& cuts) const;
  double length(const PathCounts<std::int32_t>& counts, const std::vector<double>& durations) const;
  std::size_t limit_of(const BoundRow& row) const;
  double slope(const BoundRow& row, const Column& column) const;
  bool solve();
  bool price_limit();
  bool price_path();
  bool known(const Cuts& cuts) const;
  void weigh(double share_of_best);

  Candidates& candidates_;
  CutBound& cut_bound_;
  ProofRecord* record_;
  RowWeigher weigher_;
  double to_beat_, unit_;  // ns: a length in the master is (length - to_beat) / unit
  PathMaster master_;
  std::vector<Limit> limits_;
  std::vector<Row> rows_;
  std::vector<Column> columns_;  // after the one that does not exist
  std::vector<double> tried_;    // [row] weights of the last answer
  RowWeights weights_;
  double value_ = 0;
  bool ended_ = false;  // the last answer was not new
  std::vector<double> mean_, ends_;
  double work_ = 0;
};

}  // namespace pfeife
