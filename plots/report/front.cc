#include "plots/report/front.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/result/result_engine.h"
#include "plots/figure/axis.h"
#include "plots/figure/svg.h"
#include "plots/figure/theme.h"

namespace pfeife::plots {
namespace {

constexpr double kWidth = 1000, kLeft = 76, kRight = 420, kTop = 18, kBottom = 220, kBelow = 36,
                 kLine = 13;

/// Maps [low, high] to pixels, with a margin on both sides; what is beyond stands at the end.
struct Scale {
  double low = 0, high = 1, from = 0, to = 1;
  bool contains(double value) const { return low <= value && value <= high; }
  double operator()(double value) const {
    const double inside = std::clamp(value, low, std::max(low, high));
    return from + (to - from) * (0.05 + 0.9 * (inside - low) / std::max(high - low, 1.0));
  }
};

double number(Nanoseconds time) { return static_cast<double>(time.count()); }
double number(Bytes bytes) { return static_cast<double>(bytes.value); }

/// The plan of the case, which is not always the fastest by estimate.
bool is_plan(const FrontPoint& point, const CaseRecord& report_case) {
  if (report_case.plans.empty()) return false;
  const ResultRow& row = report_case.plans.front().row;
  return row.estimate == point.estimate && row.peak_memory == point.peak_memory;
}

struct Mark {
  double x = 0, y = 0;
};

/// Numbers beside points, clear of each other and of the axes.
class Numbers {
 public:
  explicit Numbers(double bottom) : bottom_(bottom) {}

  void write(Svg& svg, const Mark& at, const std::string& number) {
    const Spot spot = free_spot(at, 6 * static_cast<double>(number.size()));
    taken_.push_back(spot);
    svg.text(spot.x, spot.y, number, {.size = 10});
  }

 private:
  struct Spot {
    double x = 0, y = 0, width = 0;
  };

  /// At one of the point's corners; if all are taken, further up, where a front is empty.
  Spot free_spot(const Mark& at, double width) const {
    const double right = at.x + 7, left = at.x - 7 - width;
    Spot spot;
    for (double up = 0; up < bottom_; up += 5)
      for (const auto& [x, y] : {Mark{right, at.y - 5 - up}, Mark{left, at.y - 5 - up},
                                 Mark{left, at.y + 13 - up}, Mark{right, at.y + 13 - up}})
        if (spot = {x, y, width}; is_free(spot)) return spot;
    return spot;
  }

  bool is_free(const Spot& spot) const {
    constexpr double kHeightOfText = 10, kBetween = 2;
    if (spot.x < kLeft + kBetween || spot.x + spot.width > kRight + 20 || spot.y > bottom_ - 2)
      return false;
    return std::ranges::none_of(taken_, [&](const Spot& other) {
      return std::abs(spot.y - other.y) < kHeightOfText &&
             spot.x < other.x + other.width + kBetween && other.x < spot.x + spot.width + kBetween;
    });
  }

  double bottom_;
  std::vector<Spot> taken_;
};

/// A plan that is not the search's.
struct Baseline {
  const ResultRow* row = nullptr;
  double time = 0, memory = 0;
};

std::vector<Baseline> baselines_of(const CaseRecord& report_case) {
  std::vector<Baseline> found;
  for (std::size_t i = 1; i < report_case.plans.size(); ++i)
    if (const ResultRow& row = report_case.plans[i].row;
        row.estimate && row.peak_memory && !is_own(row))
      found.push_back({&row, number(*row.estimate), number(*row.peak_memory)});
  return found;
}

double limit_of(const CaseRecord& report_case) {
  return report_case.plans.empty() ? 0 : number(report_case.plans.front().row.memory_limit);
}

/// From the smallest to the largest memory, baselines and limit among them, unless they are half as
/// much again as the front needs.
Scale memory_scale(const CaseRecord& report_case, const std::vector<Baseline>& baselines) {
  const std::vector<FrontPoint>& front = report_case.front;
  Scale x{number(front.back().peak_memory), number(front.front().peak_memory), kLeft, kRight};
  const double most = 1.5 * x.high;
  const auto add = [&](double memory) {
    if (memory > most || memory <= 0) return;
    x.low = std::min(x.low, memory), x.high = std::max(x.high, memory);
  };
  for (const Baseline& baseline : baselines) add(baseline.memory);
  add(limit_of(report_case));
  return x;
}

/// From the fastest on, as far as outliers do not squash the rest.
Scale time_scale(const CaseRecord& report_case, const std::vector<Baseline>& baselines,
                 double bottom) {
  double fastest = number(report_case.front.front().estimate);
  for (const Baseline& baseline : baselines) fastest = std::min(fastest, baseline.time);
  std::vector<double> over;
  for (const FrontPoint& point : report_case.front)
    over.push_back(number(point.estimate) - fastest);
  for (const Baseline& baseline : baselines) over.push_back(baseline.time - fastest);
  return {fastest, fastest + reach(over, 0.002 * fastest), bottom, kTop};
}

/// Round amounts of memory, and times over the fastest plan's.
void draw_ticks(Svg& svg, const Scale& x, const Scale& y, double fastest, double unit,
                double bottom) {
  const double m = tick_step(std::max(1e-3, (x.high - x.low) / unit));
  for (const double tick : linear_ticks(x.low / unit, x.high / unit)) {
    const double px = x(tick * unit);
    svg.line(px, kTop, px, bottom, kRule, " stroke-width=\"0.6\"");
    svg.text(px, bottom + 15, fixed(tick, std::max(1, tick_decimals(m))),
             {.size = 10, .anchor = Anchor::Middle, .color = kMuted});
  }
  const auto over = [&](double time) { return 100 * (time / fastest - 1); };
  const double t = tick_step(over(y.high) - over(y.low));
  for (const double tick : linear_ticks(over(y.low), over(y.high))) {
    const double py = y(fastest * (1 + tick / 100));
    svg.line(kLeft, py, kRight, py, kRule, " stroke-width=\"0.6\"");
    svg.text(kLeft - 6, py + 3.5, (tick > -t / 2 ? "+" : "") + fixed(tick, tick_decimals(t)) + " %",
             {.size = 10, .anchor = Anchor::End, .color = kMuted});
  }
}

/// The limit as a line, or its amount at the edge if it is far.
void draw_limit(Svg& svg, const Scale& x, double limit, const std::string& amount, double bottom) {
  if (limit <= 0) return;
  if (x.contains(limit))
    svg.line(x(limit), kTop, x(limit), bottom, kAlarm,
             " class=\"limit\" stroke-width=\"1.2\" stroke-dasharray=\"5 3\"");
  const std::string where = x.contains(limit) ? "" : limit > x.high ? " →" : " ←";
  svg.text(x.contains(limit) ? x(limit) : kRight, kTop - 4, "limit " + amount + where,
           {.size = 10, .anchor = Anchor::End, .color = kAlarm});
}

/// "a", "b", ...: the names of baselines beside their diamonds.
std::string letter_of(std::size_t baseline) {
  return std::string(1, static_cast<char>('a' + baseline % 26));
}

void draw_diamond(Svg& svg, double x, double y, const std::string& label) {
  svg.raw("<path class=\"baseline\" d=\"M0-5l5 5l-5 5l-5-5z\" transform=\"translate(" +
          coordinate(x) + " " + coordinate(y) + ")\" fill=\"" + hex(kPaper) + "\" stroke=\"" +
          hex(kInk) + "\"><title>" + escape(label) + "</title></path>\n");
}

/// One number for each run of points that are too close to have one each: "4", "5-9".
void write_numbers(Svg& svg, const std::vector<Mark>& marks, Numbers& numbers) {
  constexpr double kClose = 12;
  for (std::size_t first = 0, next; first < marks.size(); first = next) {
    for (next = first + 1; next < marks.size(); ++next)
      if (std::abs(marks[next].x - marks[first].x) >= kClose ||
          std::abs(marks[next].y - marks[first].y) >= kClose)
        break;
    std::string text = std::to_string(first + 1);
    if (next - first > 1) text += "-" + std::to_string(next);
    numbers.write(svg, marks[first], text);
  }
}

}  // namespace

std::string front_chart(const CaseRecord& report_case) {
  const std::vector<FrontPoint>& front = report_case.front;
  if (front.size() < 2) return "";
  const std::vector<Baseline> baselines = baselines_of(report_case);
  // As high as its lines of text.
  const double lines = static_cast<double>(front.size() + baselines.size());
  const double bottom = std::max(kBottom, kTop + kLine * lines);
  // The fastest needs most memory, so it is on the right.
  const Scale x = memory_scale(report_case, baselines);
  const Scale y = time_scale(report_case, baselines, bottom);
  const double fastest = number(front.front().estimate);
  const Bytes least = x.low >= number(kGiB) ? kGiB : kMiB;
  const TimeAxis unit = time_axis(front.front().estimate, 2);
  Svg svg;
  svg.line(kLeft, bottom, kRight, bottom, kMuted).line(kLeft, kTop, kLeft, bottom, kMuted);
  draw_ticks(svg, x, y, fastest, number(least), bottom);
  draw_limit(svg, x, limit_of(report_case),
             rounded(Bytes{static_cast<std::int64_t>(limit_of(report_case))}, least), bottom);
  svg.text((kLeft + kRight) / 2, bottom + 31,
           "largest peak memory, " + std::string(least == kGiB ? "GiB" : "MiB") +
               "; time over the fastest; diamonds: baselines",
           {.size = 10.5, .anchor = Anchor::Middle, .color = kMuted});
  std::string steps;
  for (std::size_t i = 0; i < front.size(); ++i) {
    const std::string px = coordinate(x(number(front[i].peak_memory)));
    const std::string py = coordinate(y(number(front[i].estimate)));
    steps += i == 0 ? "M" + px + " " + py : "V" + py + "H" + px;
  }
  svg.path(steps, " fill=\"none\" stroke=\"" + hex(kHeld) + "\" stroke-width=\"1.5\"");
  const double line = std::min(18.0, (bottom - kTop) / lines);
  std::size_t row = 0;
  const auto list = [&](const std::string& text) {
    svg.text(kRight + 22, kTop + 10 + line * static_cast<double>(row++),
             shortened(text, 10.5, kWidth - kRight - 26), {.size = 10.5});
  };
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < front.size(); ++i) {
    const FrontPoint& point = front[i];
    const double px = x(number(point.peak_memory)), py = y(number(point.estimate));
    svg.rect(px - 4, py - 4, 8, 8, is_plan(point, report_case) ? fill(Paint::Forward) : kHeld);
    marks.push_back({px, py});
    list(std::to_string(i + 1) + (y.contains(number(point.estimate)) ? "  " : "↑ ") +
         rounded(point.estimate, unit) + ", " + rounded(point.peak_memory, least) + ": " +
         point.schedule);
  }
  Numbers numbers(bottom);
  write_numbers(svg, marks, numbers);
  for (std::size_t i = 0; i < baselines.size(); ++i) {
    const Baseline& baseline = baselines[i];
    const Mark at{x(baseline.memory), y(baseline.time)};
    const std::string beyond = std::string(y.contains(baseline.time) ? "" : "↑") +
                               (x.contains(baseline.memory) ? "" : "→");
    const std::string label = rounded(*baseline.row->estimate, unit) + ", " +
                              rounded(*baseline.row->peak_memory, least) + ": " +
                              baseline.row->plan;
    draw_diamond(svg, at.x, at.y, label);
    numbers.write(svg, at, letter_of(i));
    list(letter_of(i) + (beyond.empty() ? "  " : beyond + " ") + label);
  }
  return inline_svg(svg.document(kWidth, bottom + kBelow, "time and memory, " + report_case.name));
}

}  // namespace pfeife::plots
