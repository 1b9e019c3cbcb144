#include "plots/report/search.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/round_down.h"
#include "plots/figure/axis.h"
#include "plots/figure/svg.h"
#include "plots/figure/theme.h"

namespace pfeife::plots {
namespace {

constexpr double kWidth = 760, kHeight = 236, kLeft = 76, kRight = 560, kTop = 12, kBottom = 190;

/// How far above and below the best plan the axis goes: what is further stands at its end.
constexpr double kFurthest = 0.25;

/// Candidates on a logarithmic axis; times, over the best plan's, on a linear one that outliers do
/// not stretch.
struct Plane {
  double first = 0, last = 1;  // log10 of candidates
  double best = 1;             // ns
  double low = 0, high = 0;    // over the best, less one

  double x(double candidates) const {
    return kLeft + (kRight - kLeft) * (std::log10(candidates) - first) / (last - first);
  }
  double y(Nanoseconds time) const { return at(static_cast<double>(time.count()) / best - 1); }
  double at(double over) const {
    const double inside = std::clamp(over, low, high);
    return kBottom - (kBottom - kTop) * (0.05 + 0.9 * (inside - low) / (high - low));
  }
};

double count_of(const SearchStep& step) {
  return static_cast<double>(std::max<std::size_t>(step.candidates, 1));
}

Plane plane_of(const std::vector<SearchStep>& history) {
  Plane plane;
  plane.first = std::floor(std::log10(count_of(history.front())));
  plane.last = std::max(plane.first + 1, std::log10(count_of(history.back())));
  plane.best = static_cast<double>(std::max<std::int64_t>(1, history.back().best->count()));
  for (const SearchStep& step : history)
    for (const auto& time : {step.best, step.bound})
      if (time) {
        const double over = static_cast<double>(time->count()) / plane.best - 1;
        plane.low = std::max(-kFurthest, std::min(plane.low, over));
        plane.high = std::min(kFurthest, std::max(plane.high, over));
      }
  if (plane.high - plane.low < 1e-4) plane.high = plane.low + 1e-4;
  return plane;
}

void draw_axes(Svg& svg, const Plane& plane) {
  svg.line(kLeft, kBottom, kRight, kBottom, kMuted).line(kLeft, kTop, kLeft, kBottom, kMuted);
  for (double power = plane.first; power <= plane.last; ++power) {
    const double x = plane.x(std::pow(10, power));
    svg.line(x, kTop, x, kBottom, kRule, " stroke-width=\"0.6\"");
    std::string digits = "1" + std::string(static_cast<std::size_t>(power), '0');
    for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, " ");
    svg.text(x, kBottom + 15, digits, {.size = 10, .anchor = Anchor::Middle, .color = kMuted});
  }
  svg.text((kLeft + kRight) / 2, kBottom + 31, "candidates evaluated: work, not seconds",
           {.size = 10.5, .anchor = Anchor::Middle, .color = kMuted});
  const double step = tick_step(100 * (plane.high - plane.low));
  for (double tick = std::ceil(100 * plane.low / step) * step; tick <= 100 * plane.high * 1.000001;
       tick += step) {
    const double y = plane.at(tick / 100);
    svg.line(kLeft, y, kRight, y, kRule, " stroke-width=\"0.6\"");
    svg.text(kLeft - 6, y + 3.5,
             (tick > step / 2 ? "+" : "") + fixed(tick, tick_decimals(step)) + " %",
             {.size = 10, .anchor = Anchor::End, .color = kMuted});
  }
}

/// A figure of the history as steps up to the end.
void draw_steps(Svg& svg, const Plane& plane, const std::vector<SearchStep>& history,
                std::optional<Nanoseconds> SearchStep::*figure, const std::string& stroke) {
  std::string path;
  for (const SearchStep& step : history) {
    if (!(step.*figure)) continue;
    const std::string x = coordinate(plane.x(count_of(step)));
    const std::string y = coordinate(plane.y(*(step.*figure)));
    path += path.empty() ? "M" + x + " " + y : "H" + x + "V" + y;
  }
  if (!path.empty()) svg.path(path, " fill=\"none\" stroke-width=\"1.8\" stroke=" + stroke);
}

}  // namespace

std::string search_chart(const CaseRecord& report_case) {
  const std::vector<SearchStep>& history = report_case.history;
  if (history.empty() || !history.back().best) return "";
  const Plane plane = plane_of(history);
  const SearchStep& end = history.back();
  Svg svg;
  draw_axes(svg, plane);
  draw_steps(svg, plane, history, &SearchStep::best, "\"" + hex(kHeld) + "\"");
  draw_steps(svg, plane, history, &SearchStep::bound,
             "\"" + hex(kAlarm) + "\" stroke-dasharray=\"4 3\"");
  const double best = plane.y(*end.best);
  svg.text(kRight + 10, best + 3.5, "0: best estimate " + rounded(*end.best), {.size = 10.5});
  if (end.bound) {
    const Nanoseconds shown = end.bound == end.best ? *end.bound : rounded_down(*end.bound, 4);
    svg.text(kRight + 10, std::max(plane.y(*end.bound) + 3.5, best + 18),
             "lower bound " + rounded(shown), {.size = 10.5, .color = kAlarm});
  }
  return inline_svg(svg.document(kWidth, kHeight, "search, " + report_case.name));
}

}  // namespace pfeife::plots
