// The rows that a bound weighs, longest paths and limits of memory, and their weighted sums in
// whole numbers, as CutBound takes them.
#pragma once

#include <span>
#include <vector>

#include "planner/search/bound/proof_record.h"
#include "planner/search/price/candidate.h"

namespace pfeife {

/// A path: no step is shorter than its length. Or a limit: what a rank holds at a moment of its row
/// is not above its memory.
struct BoundRow {
  PathCounts<std::int32_t> counts;
  CertifiedPath turns{};          ///< of a path, if recorded
  std::int32_t rank = -1;         ///< of a limit
  const LiveMoment* moment = {};  ///< of a limit
  bool is_limit() const { return rank >= 0; }
};

/// A weighted sum of rows: weights of paths in no unit, of limits in ns a byte, all whole numbers.
struct RowWeights {
  PathCounts<double> counts;
  double sum = 0;                ///< of the weights of paths; 0 = limits alone
  double constant = 0;           ///< what the sum has beside counts: overheads, less the limits
  CertifiedWeights certified{};  ///< if recorded
};

class RowWeigher {
 public:
  /// `record` != nullptr: RowWeights::certified is filled.
  RowWeigher(const Candidates& candidates, ProofRecord* record);

  BoundRow limit(std::size_t rank, const LiveMoment& moment) const;
  /// What whole-number weights of paths are to sum to, about: sums stay below 2^53.
  double target() const { return target_; }
  /// A limit's bytes times this compare with the ns of paths.
  double byte_scale(std::size_t rank) const { return byte_scale_[rank]; }

  struct Weighted {
    const BoundRow* row;
    double weight;  ///< a limit's: of its bytes times byte_scale
  };
  /// About `factor` times the weights.
  RowWeights weigh(std::span<const Weighted> rows, double factor) const;

 private:
  double most_bytes(std::span<const Weighted> rows) const;

  const Candidates& candidates_;
  ProofRecord* record_;
  double target_;
  std::vector<double> byte_scale_;  // [rank]
};

}  // namespace pfeife
