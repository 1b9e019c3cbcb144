// How well medians of measurements are known, without an assumption on their noise.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// An interval that contains the median of what was drawn from with a probability of `coverage`.
struct MedianInterval {
  double median = 0, low = 0, high = 0;
  double coverage = 0;
  /// Half its width over the median; 0 if the median is.
  double half_width() const;
};

/// P(X <= k) of a binomial of n draws at 1/2. n < 1000.
double binomial_half(std::size_t n, std::size_t k);

/// Between order statistics: the j-th smallest and the j-th largest value, j as large as the
/// coverage, 1 - 2 P(X < j), allows (David and Nagaraja, Order Statistics, 3rd ed. 2003, sec. 7.1).
/// None where even the smallest and the largest cover less: 95 % take 6 values. The median of an
/// even number of values is the mean of the middle two.
std::optional<MedianInterval> median_interval(std::vector<double> values, double coverage = 0.95);

/// How much longer `slower` takes than `faster`, as a share of the latter: the interval of the
/// median of the rounds' own ratios - 1. Both are of the same rounds, so that what slows a whole
/// round cancels out.
std::optional<MedianInterval> paired_difference(std::span<const Nanoseconds> faster,
                                                std::span<const Nanoseconds> slower,
                                                double coverage = 0.95);

}  // namespace pfeife
