#include <algorithm>
#include <cmath>

#include "planner/ir/basics/round_down.h"
#include "planner/ir/result/result_engine.h"
#include "plots/figure/axis.h"
#include "plots/figure/svg.h"
#include "plots/figure/theme.h"
#include "plots/report/parts.h"

namespace pfeife::plots {
namespace {

constexpr double kWidth = 760, kHeight = 236, kLeft = 76, kRight = 560, kTop = 12, kBottom = 190;

/// A figure that does not change: a baseline.
struct Level {
  std::string name;
  Nanoseconds time{0};
};

/// Candidates on a logarithmic axis; times, over the best plan's, on a linear one that outliers do
/// not stretch: what is further stands at its end.
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

std::vector<Level> baselines_of(const CaseRecord& report_case) {
  std::vector<Level> levels;
  for (std::size_t i = 1; i < report_case.plans.size(); ++i)
    if (const ResultRow& row = report_case.plans[i].row; row.estimate && !is_own(row))
      levels.push_back({row.plan, *row.estimate});
  return levels;
}

Plane plane_of(const std::vector<SearchStep>& history, const std::vector<Level>& baselines) {
  constexpr double kLeast = 0.002;
  Plane plane;
  plane.first = std::floor(std::log10(count_of(history.front())));
  plane.last = std::max(plane.first + 1, std::log10(count_of(history.back())));
  plane.best = static_cast<double>(std::max<std::int64_t>(1, history.back().best->count()));
  std::vector<double> above, below;
  const auto add = [&](Nanoseconds time) {
    const double over = static_cast<double>(time.count()) / plane.best - 1;
    (over >= 0 ? above : below).push_back(std::abs(over));
  };
  for (const SearchStep& step : history)
    for (const auto& time : {step.best, step.bound})
      if (time) add(*time);
  for (const Level& level : baselines) add(level.time);
  plane.high = reach(above, kLeast);
  if (!below.empty()) {
    // The last bound always has its place.
    const auto last = history.back().bound;
    const double gap = last ? 1 - static_cast<double>(last->count()) / plane.best : 0;
    plane.low = -std::max(gap, reach(below, kLeast));
  }
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
  for (const double tick : linear_ticks(100 * plane.low, 100 * plane.high)) {
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

struct Note {
  double y = 0;
  std::string text;
  Color color = kInk;
};

/// What the lines are, beside their ends and clear of each other.
void draw_notes(Svg& svg, std::vector<Note> notes) {
  constexpr double kLine = 14;
  std::ranges::stable_sort(notes, {}, &Note::y);
  double next = kTop + 4;
  for (Note& note : notes) next = (note.y = std::max(note.y, next)) + kLine;
  double most = kBottom + kLine;
  for (std::size_t i = notes.size(); i-- > 0;)
    most = (notes[i].y = std::min(notes[i].y, most - kLine));
  for (const Note& note : notes)
    svg.text(kRight + 10, note.y + 3.5, shortened(note.text, 10.5, kWidth - kRight - 14),
             {.size = 10.5, .color = note.color});
}

/// "1f1b +36.2 %", with an arrow if it is beyond the axis.
Note note_of(const Plane& plane, const Level& level) {
  const double over = static_cast<double>(level.time.count()) / plane.best - 1;
  const std::string beyond = over > plane.high ? "↑ " : over < plane.low ? "↓ " : "";
  return {plane.y(level.time), beyond + level.name + " " + (over < 0 ? "" : "+") + percent(over),
          kMuted};
}

}  // namespace

std::string search_chart(const CaseRecord& report_case) {
  const std::vector<SearchStep>& history = report_case.history;
  if (history.empty() || !history.back().best) return "";
  const std::vector<Level> baselines = baselines_of(report_case);
  const Plane plane = plane_of(history, baselines);
  const SearchStep& end = history.back();
  const TimeAxis unit = time_axis(*end.best, 2);
  Svg svg;
  draw_axes(svg, plane);
  std::vector<Note> notes;
  for (const Level& level : baselines) {
    svg.line(kLeft, plane.y(level.time), kRight, plane.y(level.time), kMuted,
             " class=\"baseline\" stroke-dasharray=\"1 3\"");
    notes.push_back(note_of(plane, level));
  }
  draw_steps(svg, plane, history, &SearchStep::best, "\"" + hex(kHeld) + "\"");
  draw_steps(svg, plane, history, &SearchStep::bound,
             "\"" + hex(kAlarm) + "\" stroke-dasharray=\"4 3\"");
  notes.push_back({plane.y(*end.best), "0: best estimate " + rounded(*end.best, unit)});
  if (end.bound) {
    const Nanoseconds shown = end.bound == end.best ? *end.bound : rounded_down(*end.bound, 4);
    notes.push_back({plane.y(*end.bound), "lower bound " + rounded(shown, unit), kAlarm});
  }
  draw_notes(svg, std::move(notes));
  return inline_svg(svg.document(kWidth, kHeight, "search, " + report_case.name));
}

}  // namespace pfeife::plots
