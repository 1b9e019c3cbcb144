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

/// Candidates on a logarithmic axis, times on a linear one.
struct Plane {
  double first = 0, last = 1;  // log10 of candidates
  double low = 0, high = 1;    // ns

  double x(double candidates) const {
    return kLeft + (kRight - kLeft) * (std::log10(candidates) - first) / (last - first);
  }
  double y(Nanoseconds time) const {
    return kBottom - (kBottom - kTop) *
                         (0.05 + 0.9 * (static_cast<double>(time.count()) - low) / (high - low));
  }
};

double count_of(const SearchStep& step) {
  return static_cast<double>(std::max<std::size_t>(step.candidates, 1));
}

Plane plane_of(const std::vector<SearchStep>& history) {
  Plane plane;
  plane.first = std::floor(std::log10(count_of(history.front())));
  plane.last = std::max(plane.first + 1, std::log10(count_of(history.back())));
  std::vector<double> times;
  for (const SearchStep& step : history)
    for (const auto& time : {step.best, step.bound})
      if (time) times.push_back(static_cast<double>(time->count()));
  plane.low = std::ranges::min(times);
  plane.high = std::max(plane.low + 1, std::ranges::max(times));
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
  for (const double time : {plane.low, plane.high}) {
    const Nanoseconds at{static_cast<std::int64_t>(time)};
    svg.line(kLeft, plane.y(at), kRight, plane.y(at), kRule, " stroke-width=\"0.6\"");
    svg.text(kLeft - 6, plane.y(at) + 3.5, rounded(at),
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
  svg.text(kRight + 10, best + 3.5, "best estimate " + rounded(*end.best), {.size = 10.5});
  if (end.bound) {
    const Nanoseconds shown = end.bound == end.best ? *end.bound : rounded_down(*end.bound, 4);
    svg.text(kRight + 10, std::max(plane.y(*end.bound) + 3.5, best + 18),
             "lower bound " + rounded(shown), {.size = 10.5, .color = kAlarm});
  }
  return inline_svg(svg.document(kWidth, kHeight, "search, " + report_case.name));
}

}  // namespace pfeife::plots
