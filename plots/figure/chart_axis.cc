#include "plots/figure/chart_axis.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/basics/decimals.h"
#include "plots/figure/axis.h"

namespace pfeife::plots {
namespace {

/// The next larger of 1, 2, 5 x 10^k.
double larger_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step) + 1e-9));
  return step / power < 1.5 ? 2 * power : step / power < 3 ? 5 * power : 10 * power;
}

}  // namespace

ValueAxis value_axis(std::span<const double> values) {
  if (values.empty()) return {};
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double median = sorted[(sorted.size() - 1) / 2], least = sorted.front(),
               most = sorted.back();
  std::vector<double> above, below;
  for (const double value : sorted) {
    above.push_back(value - median);
    below.push_back(median - value);
  }
  ValueAxis axis{.low = median - reach(below, 0),
                 .high = median + reach(above, 0),
                 .least = least,
                 .most = most};
  // A strip is for what would take more room than the rest has.
  if (most - axis.low < 1.6 * (axis.high - axis.low)) axis.high = most;
  if (least >= 0 && axis.low < 0.4 * axis.high)
    axis.low = 0;
  else if (axis.high - least < 1.6 * (axis.high - axis.low))
    axis.low = least;
  axis.outliers_above = most > axis.high;
  axis.outliers_below = least < axis.low;
  const double range = axis.high > axis.low ? axis.high - axis.low
                       : axis.high != 0     ? std::fabs(axis.high)
                                            : 1;
  axis.high += 0.05 * range;
  if (axis.low != 0) axis.low -= 0.05 * range;
  if (axis.high <= axis.low) axis.high = axis.low + range;
  return axis;
}

ValueAxis taking_in(ValueAxis axis, double value) {
  const double range = axis.high - axis.low;
  if (value > axis.high && value < axis.high + 0.6 * range) axis.high = value + 0.04 * range;
  if (value < axis.low && value > axis.low - 0.6 * range)
    axis.low = value >= 0 ? std::max(0.0, value - 0.04 * range) : value - 0.04 * range;
  axis.outliers_above = axis.most > axis.high;
  axis.outliers_below = axis.least < axis.low;
  return axis;
}

std::vector<AxisTick> value_ticks(const ValueAxis& axis, std::size_t most) {
  double step = tick_step(axis.high - axis.low);
  const auto count = [&] {
    return std::floor(axis.high / step + 1e-9) - std::ceil(axis.low / step - 1e-9) + 1;
  };
  while (count() > static_cast<double>(std::max<std::size_t>(2, most))) step = larger_step(step);
  std::vector<AxisTick> ticks;
  for (double n = std::ceil(axis.low / step - 1e-9); n * step <= axis.high + step * 1e-9; ++n)
    ticks.push_back({n * step, fixed(n * step, tick_decimals(step))});
  return ticks;
}

KeyAxis KeyAxis::of_numbers(std::vector<double> values) {
  std::ranges::sort(values);
  const auto repeated = std::ranges::unique(values);
  values.erase(repeated.begin(), repeated.end());
  KeyAxis axis;
  if (values.empty()) return axis;
  axis.logarithmic_ = values.size() > 2 && values.front() > 0 && values.back() > 6 * values.front();
  for (std::size_t i = 1; i < values.size(); ++i)
    axis.logarithmic_ = axis.logarithmic_ && values[i] >= 1.25 * values[i - 1];
  axis.low_ = axis.position(values.front());
  axis.high_ = axis.position(values.back());
  constexpr std::size_t kMostTicks = 24;
  if (values.size() > kMostTicks && !axis.logarithmic_) {
    const int decimals = tick_decimals(tick_step(values.back() - values.front()));
    for (const double value : linear_ticks(values.front(), values.back()))
      axis.ticks_.push_back({value, fixed(value, decimals)});
    return axis;
  }
  for (const double value : values) axis.ticks_.push_back({value, shortest(value)});
  return axis;
}

KeyAxis KeyAxis::of_words(std::vector<std::string> words) {
  KeyAxis axis;
  for (std::size_t i = 0; i < words.size(); ++i)
    axis.ticks_.push_back({static_cast<double>(i), std::move(words[i])});
  axis.low_ = -0.5;
  axis.high_ = static_cast<double>(axis.ticks_.size()) - 0.5;
  return axis;
}

double KeyAxis::position(double x) const { return logarithmic_ ? std::log2(x) : x; }

double KeyAxis::share(double x) const {
  return high_ > low_ ? (position(x) - low_) / (high_ - low_) : 0.5;
}

}  // namespace pfeife::plots
