#include "planner/ir/trace/median_interval.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/basics/error.h"

namespace pfeife {

double MedianInterval::half_width() const { return median > 0 ? (high - low) / 2 / median : 0; }

double binomial_half(std::size_t n, std::size_t k) {
  double term = std::pow(0.5, static_cast<double>(n)), sum = 0;
  for (std::size_t i = 0; i <= std::min(k, n); ++i) {
    sum += term;
    term *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  }
  return sum;
}

std::optional<MedianInterval> median_interval(std::vector<double> values, double coverage) {
  const std::size_t n = values.size();
  PFEIFE_CHECK(n < 1000, n, " values");
  std::size_t j = 0;
  while (j < n / 2 && 1 - 2 * binomial_half(n, j) >= coverage) ++j;
  if (j == 0) return std::nullopt;
  std::ranges::sort(values);
  return MedianInterval{.median = (values[(n - 1) / 2] + values[n / 2]) / 2,
                        .low = values[j - 1],
                        .high = values[n - j],
                        .coverage = 1 - 2 * binomial_half(n, j - 1)};
}

std::optional<MedianInterval> paired_difference(std::span<const Nanoseconds> faster,
                                                std::span<const Nanoseconds> slower,
                                                double coverage) {
  PFEIFE_CHECK(faster.size() == slower.size(), "other rounds");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < faster.size(); ++i)
    ratios.push_back(
        static_cast<double>(slower[i].count()) / static_cast<double>(faster[i].count()) - 1);
  return median_interval(std::move(ratios), coverage);
}

}  // namespace pfeife
