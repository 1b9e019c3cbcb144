#include "runtime/profile/step_times.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/basics/error.h"
#include "runtime/profile/statistics.h"

namespace pfeife {
namespace {

double count_of(Nanoseconds time) { return static_cast<double>(time.count()); }

/// The p-quantile, linear between order statistics.
double quantile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Of the normal variate with the same 5th and 95th percentile.
double deviation(std::vector<double> values) {
  constexpr double kNormal95 = 1.6448536;  // 95 % of a normal variate lie below so many deviations
  std::ranges::sort(values);
  return (quantile(values, 0.95) - quantile(values, 0.05)) / (2 * kNormal95);
}

}  // namespace

Nanoseconds StepTimes::typical(std::size_t kind) const {
  std::vector<Nanoseconds> means;
  for (const auto& step : steps_) {
    Nanoseconds sum{0};
    std::int64_t count = 0;
    for (const Pass& pass : step)
      if (pass.kind == kind) sum += pass.time, ++count;
    if (count > 0) means.push_back(sum / count);
  }
  return median(std::move(means));
}

std::vector<double> StepTimes::means() const {
  std::vector<double> sums;
  std::vector<std::size_t> counts;
  for (const auto& step : steps_)
    for (const Pass& pass : step) {
      sums.resize(std::max(sums.size(), pass.kind + 1));
      counts.resize(sums.size());
      sums[pass.kind] += count_of(pass.time);
      ++counts[pass.kind];
    }
  for (std::size_t k = 0; k < sums.size(); ++k)
    if (counts[k] > 0) sums[k] /= static_cast<double>(counts[k]);
  return sums;
}

MeasuredVariation StepTimes::found() const {
  PFEIFE_CHECK(steps_.size() >= 2, "variation of ", steps_.size(), " steps");
  const std::vector<double> mean = means();
  std::vector<double> factors, residuals;
  double freedom = 0;  // of the residuals, a share of one each
  double left = 0;     // of cv^2 in the variance of a factor, mean over steps
  for (const auto& step : steps_) {
    double sum = 0, expected = 0, squares = 0;
    for (const Pass& pass : step) {
      sum += count_of(pass.time);
      expected += mean[pass.kind];
      squares += mean[pass.kind] * mean[pass.kind];
    }
    if (expected <= 0) continue;
    factors.push_back(sum / expected);
    for (const Pass& pass : step)
      residuals.push_back(count_of(pass.time) / mean[pass.kind] - factors.back());
    const double share = squares / (expected * expected);
    left += share;
    // Sum over passes i with shares w_i of the variance of e_i - sum w_j e_j, in units of cv^2.
    freedom += static_cast<double>(step.size()) * (1 + share) - 2;
  }
  if (factors.size() < 2 || freedom <= 0) return {};
  left /= static_cast<double>(factors.size());
  const double cv =
      deviation(residuals) * std::sqrt(static_cast<double>(residuals.size()) / freedom);
  const double whole = deviation(factors);
  return {std::min(cv, 1.0),
          std::min(std::sqrt(std::max(0.0, whole * whole - cv * cv * left)), 1.0)};
}

}  // namespace pfeife
