// How far predictions are from what was measured.
#pragma once

#include <span>
#include <vector>

namespace pfeife::published {

struct Pair {
  double predicted = 0, measured = 0;  ///< of one unit
  double error() const { return predicted / measured - 1; }
};

struct Score {
  std::size_t runs = 0;
  double mean = 0, median = 0, largest = 0;  ///< of |predicted / measured - 1|
  double bias = 0;                           ///< mean of predicted / measured - 1
  double tau = 0;  ///< Kendall's: (pairs in the same order - in the other one) / all pairs
};
Score score(std::span<const Pair> pairs);

/// The factor on predictions with the least sum of absolute log errors: the median of measured over
/// predicted, which rows far off any model do not pull.
double calibration(std::span<const Pair> pairs);

}  // namespace pfeife::published
