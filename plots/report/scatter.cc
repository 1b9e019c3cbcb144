#include <algorithm>
#include <cmath>

#include "plots/figure/axis.h"
#include "plots/figure/svg.h"
#include "plots/figure/theme.h"
#include "plots/report/parts.h"

namespace pfeife::plots {
namespace {

constexpr double kWidth = 560, kHeight = 400, kLeft = 64, kRight = 404, kTop = 12, kBottom = 352;

struct Point {
  Nanoseconds measured, p5, p95, predicted;
  bool simulated = false;
  std::string label;
  std::optional<MedianInterval> interval;  ///< of the measured median, in ns
};

/// The same for both directions, in ns.
struct Scale {
  double low = 0, high = 1;
  bool logarithmic = false;

  double share(Nanoseconds time) const {
    const double value = static_cast<double>(time.count());
    return logarithmic ? std::log(value / low) / std::log(high / low)
                       : (value - low) / (high - low);
  }
  double x(Nanoseconds time) const { return kLeft + (kRight - kLeft) * share(time); }
  double y(Nanoseconds time) const { return kBottom - (kBottom - kTop) * share(time); }
};

std::vector<Point> points_of(const std::vector<CaseRecord>& cases) {
  std::vector<Point> points;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) {
      if (!was_measured(plan)) continue;
      const auto add = [&](const std::optional<Nanoseconds>& predicted, bool simulated) {
        if (predicted)
          points.push_back({*plan.row.measure, plan.measured->p5, plan.measured->p95, *predicted,
                            simulated, record.name + ", " + plan.row.plan,
                            median_interval(*plan.measured)});
      };
      add(plan.row.estimate, false);
      add(plan.row.simulate, true);
    }
  return points;
}

Scale scale_of(const std::vector<Point>& points) {
  Nanoseconds least = Nanoseconds::max(), most{1};
  for (const Point& point : points)
    for (const Nanoseconds time : {point.measured, point.p5, point.p95, point.predicted}) {
      if (time <= Nanoseconds{0}) continue;
      least = std::min(least, time), most = std::max(most, time);
    }
  least = std::min(least, most);
  const double low = static_cast<double>(least.count()), high = static_cast<double>(most.count());
  if (high / low >= 50) return {low / 1.15, high * 1.15, true};
  const double margin = std::max(0.06 * (high - low), 0.02 * high);
  return {std::max(0.0, low - margin), high + margin, false};
}

/// Round times within the scale.
std::vector<double> ticks_of(const Scale& scale, double unit) {
  return scale.logarithmic ? log_ticks(scale.low / unit, scale.high / unit)
                           : linear_ticks(scale.low / unit, scale.high / unit);
}

void draw_axes(Svg& svg, const Scale& scale, const TimeAxis& unit) {
  const double size = static_cast<double>(unit.unit_size.count());
  const std::vector<double> ticks = ticks_of(scale, size);
  const double step = scale.logarithmic ? 1 : ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  std::vector<PredictedTick> shown;
  for (const double tick : ticks) {
    const Nanoseconds time{std::llround(tick * size)};
    const std::string text = fixed(tick, tick_decimals(std::min(step, tick > 0 ? tick : 1)));
    shown.push_back({scale.share(time), text});
  }
  draw_predicted_axes(svg, {kLeft, kRight, kTop, kBottom, unit.unit, "predicted"}, shown);
}

void draw_mark(Svg& svg, double x, double y, bool simulated, const std::string& label) {
  const std::string color = hex(kHeld);
  const char* shape = simulated ? "M-3-3h6v6h-6z" : "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0z";
  svg.raw("<path class=\"predicted\" d=\"" + std::string(shape) + "\" transform=\"translate(" +
          coordinate(x) + " " + coordinate(y) + ")\" fill=\"" + (simulated ? color : hex(kPaper)) +
          "\" stroke=\"" + color + "\" stroke-width=\"1.5\"><title>" + escape(label) +
          "</title></path>\n");
}

void draw_legend(Svg& svg, const std::vector<Point>& points) {
  const double x = kRight + 20;
  double y = kTop + 14;
  for (const bool simulated : {false, true}) {
    if (std::ranges::none_of(points, [&](const Point& p) { return p.simulated == simulated; }))
      continue;
    draw_mark(svg, x + 8, y - 4, simulated, simulated ? "simulated" : "estimated");
    svg.text(x + 24, y, simulated ? "simulated" : "estimated", {.size = 10.5});
    y += 18;
  }
  svg.line(x, y - 4, x + 16, y - 4, kInk, " stroke-width=\"1.2\"");
  svg.text(x + 24, y, "p5 to p95 measured", {.size = 10.5});
  y += 18;
  if (std::ranges::any_of(points, [](const Point& p) { return p.interval.has_value(); })) {
    svg.line(x, y - 4, x + 16, y - 4, kInk, " stroke-width=\"4\"");
    svg.text(x + 24, y, "95 % of the median", {.size = 10.5});
    y += 18;
  }
  svg.line(x, y - 4, x + 16, y - 4, kMuted, " stroke-width=\"1.2\" stroke-dasharray=\"4 3\"");
  svg.text(x + 24, y, "no error", {.size = 10.5});
}

}  // namespace

std::string accuracy_scatter(const std::vector<CaseRecord>& cases) {
  const std::vector<Point> points = points_of(cases);
  if (points.empty()) return "";
  const Scale scale = scale_of(points);
  const TimeAxis unit = time_axis(Nanoseconds{std::llround(scale.high)}, 5);
  Svg svg;
  draw_axes(svg, scale, unit);
  svg.line(kLeft, kBottom, kRight, kTop, kMuted,
           " class=\"no_error\" stroke-width=\"1.2\" stroke-dasharray=\"4 3\"");
  for (const Point& point : points)
    if (point.p5 > Nanoseconds{0} && point.p95 >= point.p5)
      svg.line(scale.x(point.p5), scale.y(point.predicted), scale.x(point.p95),
               scale.y(point.predicted), kInk, " class=\"spread\" stroke-width=\"1.2\"");
  for (const Point& point : points)
    if (point.interval)
      svg.line(scale.x(Nanoseconds{std::llround(point.interval->low)}), scale.y(point.predicted),
               scale.x(Nanoseconds{std::llround(point.interval->high)}), scale.y(point.predicted),
               kInk, " class=\"interval\" stroke-width=\"4\"");
  for (const Point& point : points) {
    const double error = relative_error(static_cast<double>(point.predicted.count()),
                                        static_cast<double>(point.measured.count()));
    draw_mark(svg, scale.x(point.measured), scale.y(point.predicted), point.simulated,
              point.label + ": " + (point.simulated ? "simulated " : "estimated ") +
                  rounded(point.predicted, unit) + ", measured " + rounded(point.measured, unit) +
                  ", error " + (error < 0 ? "" : "+") + percent(error));
  }
  draw_legend(svg, points);
  return inline_svg(svg.document(kWidth, kHeight, "predicted over measured step times"));
}

}  // namespace pfeife::plots
