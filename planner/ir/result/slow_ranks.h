// What a plan's step takes if one of its ranks computes slower than the plan takes it to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

/// Estimated; the plan stays as it is.
struct SlowRanks {
  double factor = 1.1;             ///< of all that the slow rank computes
  std::optional<RankId> rank;      ///< which one was asked about; absent = any
  Nanoseconds now{0};              ///< with no slow rank
  std::vector<Nanoseconds> steps;  ///< [rank] if that one is slow
  /// [rank] The largest factor, to a thousandth and at most kMostSlack, that makes the step no more
  /// than a thousandth longer.
  std::vector<double> slack;
  static constexpr double kMostSlack = 2;
  friend bool operator==(const SlowRanks&, const SlowRanks&) = default;
};

/// "if rank 3 computes 10 % slower, the step takes 35.4 ms (+7.3 %)", then all ranks, then slack.
std::vector<std::string> sentences(const SlowRanks& slow);

}  // namespace pfeife
