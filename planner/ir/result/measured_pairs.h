// Plans of a case that were measured in the same rounds, two by two: which is faster, and is that
// known?
#pragma once

#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife {

struct MeasuredPair {
  std::size_t faster = 0, slower = 0;  ///< among the plans of the case
  MedianInterval longer;               ///< the slower one's time over the faster one's, - 1
  bool predicted = false;              ///< the faster one's prediction is the shorter one
  /// The rounds tell which is faster.
  bool apart() const { return longer.low > 0; }
};

/// Plans of at least six rounds, and of as many as the other. Sorted by the measured step of the
/// faster, then of the slower plan. The prediction is the simulation where both have one, otherwise
/// the estimate.
std::vector<MeasuredPair> measured_pairs(const CaseRecord& record);

}  // namespace pfeife
