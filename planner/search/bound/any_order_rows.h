// Chains that every order of the actions has, whatever it is, and what they cost for given cuts.
//
// A rank has its work to do after something and before something: the first microbatch comes to one
// of its stages, on its way forward or back; the rank does all that is left of its work, for all
// microbatches; then it is done, or the last microbatch goes back to the first stage. Of that work
// counts what surely waits for the stage that the microbatch comes to, and what the way back surely
// waits for: in a model with branches not all of it. The length of each such row is a sum over the
// stages, so that weights of rows turn into a bound as those of paths do (cut_bound.h).
#pragma once

#include "planner/search/bound/cut_bound.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Cuts that a bound is of: those whose stages take at least so many ns for F and B of a microbatch
/// ([stage]; empty = any), and, if `linked`, whose neighbouring stages on different ranks send
/// values and get gradients back.
struct CutClass {
  std::vector<std::int64_t> least_load = {};
  bool linked = false;
};

struct AnyOrderRow {
  static constexpr std::size_t kNot = ~std::size_t{0};
  std::uint32_t rank = 0;
  std::size_t come = 0;     ///< stage that the first microbatch comes to, before the rank works
  std::size_t back = kNot;  ///< if it goes on to the last one: stage that it comes back to
  /// Stage whose I the last microbatch leaves behind when the rank has done its work, to go back to
  /// the first; 0 = the rank's own end counts.
  std::size_t leave = 0;
  /// Stage at which the first microbatch's way begins to count: those before may send nothing on.
  std::size_t from = 0;
  /// The rank's work counts in stages [low, high) alone: others may not wait for the stage that the
  /// microbatch comes to, or the way back may not wait for them.
  std::size_t low = 0, high = kNot;

  /// As certificates write it: s for every stage before `from`, f for every further one passed, b
  /// for every one on the way back with the one it comes to, d for every one after it leaves, l for
  /// every stage before `low`, h for every one from `high` on.
  CertifiedPath certified(std::size_t stages) const;
};

/// All rows of a placement whose every step surely exists for all cuts of the class; the way of the
/// first microbatch is left out before a stage that may not wait for its neighbour.
class AnyOrderRows {
 public:
  /// Keeps references to model and problem.
  AnyOrderRows(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
               const CutClass& cuts = {});

  bool any_cuts() const { return any_cuts_; }
  /// Every stage surely waits for the one before it.
  bool all_forward() const;
  /// As above, and every stage on its way back for the one behind it.
  bool is_chain() const;
  /// A further row, which no certificate can say and row() does not know; a message that may not
  /// exist counts nothing in it. `constant`: ns on top.
  void add(PathCounts<std::int32_t> counts, double constant);
  std::size_t size() const { return counts_.size(); }
  const AnyOrderRow& row(std::size_t number) const { return rows_[number]; }

  /// [row] its length (ns) for the cuts.
  std::vector<double> lengths(const Cuts& cuts) const;
  /// The smallest weighted sum of rows over all cuts, exact for whole weights.
  CutBound::Minimum minimum(const std::vector<double>& weights);
  /// Rows that come to stage s and end with the rank or go back from there.
  std::vector<std::size_t> rows_around(std::size_t s) const;
  /// The shortest that the longest of rows_around can be of the stage that has the segment (layers
  /// between positions `segment` and the next), whichever it is.
  double around_segment(std::int32_t segment);
  /// Weights that add up to this keep all sums below 2^53.
  double most_weight() const;

 private:
  double overhead(std::size_t work, std::size_t s) const;
  bool limit(AnyOrderRow& row) const;
  void add(AnyOrderRow row);

  const CutModel& model_;
  std::int32_t microbatches_;
  Placement placement_;
  CutCosts costs_;
  LiveMemory live_;
  CutBound cut_bound_;
  CutRegion region_;  // the class
  bool any_cuts_ = false;
  std::vector<CutCosts::Waits> waits_;  // [boundary]
  std::vector<AnyOrderRow> rows_;
  std::vector<PathCounts<std::int32_t>> counts_;  // [row]
  std::vector<double> constants_;                 // [row]
  double longest_messages_ = 0;                   // of the further rows, of one microbatch, ns
};

}  // namespace pfeife
