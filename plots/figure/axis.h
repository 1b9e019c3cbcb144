// Round ticks, and the axes of pictures of predicted over measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"
#include "plots/figure/svg.h"

namespace pfeife::plots {

// Round ticks, and figures for people in one unit for a whole axis.

/// Ticks from 0 to `longest`, `step` apart, all written in one unit.
struct TimeAxis {
  std::string unit;                ///< "ns", "µs", "ms" or "s"
  Nanoseconds unit_size{1};        ///< one of the unit
  std::vector<Nanoseconds> ticks;  ///< 0, step, 2 step, ... <= longest; step = 1, 2 or 5 x 10^k ns
};
/// Axis for times from 0 to `longest` with at most `most` (>= 2) ticks. 0 is taken as 1 ns.
TimeAxis time_axis(Nanoseconds longest, std::size_t most);

/// The time in the axis' unit without the unit, exact to the nanosecond, no trailing zeros.
std::string exact(Nanoseconds time, const TimeAxis& axis);
/// "123.4 ms": four digits, for headings.
std::string rounded(Nanoseconds time);
/// "0.9123 ms", "12.35 ms": four digits, at most four after the point, in the axis' unit.
std::string rounded(Nanoseconds time, const TimeAxis& axis);
/// The largest 1, 2 or 5 x 10^k that is at most a quarter of the range (> 0): at least four ticks.
double tick_step(double range);
/// Decimals that such a step needs: 0.05 -> 2, 20 -> 0.
int tick_decimals(double step);
/// Ticks tick_step(high - low) apart within [low, high].
std::vector<double> linear_ticks(double low, double high);
/// Ticks of a logarithmic axis within [low, high], low > 0: 1, 2 and 5 x 10^k, of more than four
/// decades 10^k. At least four if high / low >= 50.
std::vector<double> log_ticks(double low, double high);
/// How far an axis goes on one side, of the distances that it shows: four times the median of those
/// that are not 0, at least `least`, and no further than the furthest. So an outlier does not
/// squash the rest: it stands at the end.
double reach(std::vector<double> distances, double least);
/// "22.2 %", of a fraction.
std::string percent(double fraction);
/// "12.35 GiB": four digits.
std::string rounded(Bytes bytes);
/// The same in the unit that `scale` would be written in.
std::string rounded(Bytes bytes, Bytes scale);

// The axes of a chart of predicted over measured steps: the same ticks on both.

struct PredictedAxes {
  double left = 0, right = 0, top = 0, bottom = 0;
  std::string unit;       ///< of the steps
  std::string predicted;  ///< "predicted" or which engine's: "estimated"
};
struct PredictedTick {
  double share = 0;  ///< of the axis, from its beginning
  std::string text;
};

/// Rules, figures and titles; the marks and the line of no error are the caller's.
void draw_predicted_axes(Svg& svg, const PredictedAxes& axes, std::span<const PredictedTick> ticks);

}  // namespace pfeife::plots
