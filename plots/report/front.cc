#include "plots/report/front.h"

#include <algorithm>
#include <cmath>

#include "plots/figure/axis.h"
#include "plots/figure/svg.h"
#include "plots/figure/theme.h"

namespace pfeife::plots {
namespace {

constexpr double kWidth = 1000, kLeft = 76, kRight = 420, kTop = 12, kBottom = 214, kBelow = 36,
                 kLine = 13;

/// Maps [low, high] to pixels, with a margin on both sides.
struct Scale {
  double low = 0, high = 1, from = 0, to = 1;
  double operator()(double value) const {
    return from + (to - from) * (0.05 + 0.9 * (value - low) / std::max(high - low, 1.0));
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

/// Round amounts of memory, and times over the fastest plan's.
void draw_ticks(Svg& svg, const std::vector<FrontPoint>& front, const Scale& x, const Scale& y,
                double bottom) {
  const double unit =
      number(front.back().peak_memory) >= number(kGiB) ? number(kGiB) : number(kMiB);
  const double memory = std::max(1e-3, (x.high - x.low) / unit), m = tick_step(memory);
  for (double tick = std::ceil(x.low / unit / m) * m; tick * unit <= x.high; tick += m) {
    const double px = x(tick * unit);
    svg.line(px, kTop, px, bottom, kRule, " stroke-width=\"0.6\"");
    svg.text(px, bottom + 15, fixed(tick, std::max(1, tick_decimals(m))),
             {.size = 10, .anchor = Anchor::Middle, .color = kMuted});
  }
  const double fastest = number(front.front().estimate);
  const double over = std::max(1e-4, 100 * (y.high - y.low) / fastest), t = tick_step(over);
  for (double tick = 0; tick <= over; tick += t) {
    const double py = y(y.low + tick / 100 * fastest);
    svg.line(kLeft, py, kRight, py, kRule, " stroke-width=\"0.6\"");
    svg.text(kLeft - 6, py + 3.5, "+" + fixed(tick, tick_decimals(t)) + " %",
             {.size = 10, .anchor = Anchor::End, .color = kMuted});
  }
}

/// Baselines as hollow diamonds, and the memory limit, where they lie within the axes.
void draw_baselines(Svg& svg, const CaseRecord& report_case, const Scale& x, const Scale& y) {
  const auto inside = [](const Scale& scale, double value) {
    return scale.low <= value && value <= scale.high;
  };
  for (std::size_t i = 0; i < report_case.plans.size(); ++i) {
    const ResultRow& row = report_case.plans[i].row;
    if (i == 0 && inside(x, number(row.memory_limit)))
      svg.line(x(number(row.memory_limit)), kTop, x(number(row.memory_limit)), y(y.low), kAlarm,
               " stroke-width=\"1.2\" stroke-dasharray=\"5 3\"");
    if (i == 0 || !row.estimate || !row.peak_memory) continue;
    const double time = number(*row.estimate), memory = number(*row.peak_memory);
    if (!inside(x, memory) || !inside(y, time)) continue;
    svg.path("M" + coordinate(x(memory)) + " " + coordinate(y(time) - 5) + "l5 5l-5 5l-5-5z",
             " fill=\"" + hex(kPaper) + "\" stroke=\"" + hex(kInk) + "\"");
  }
}

/// One number for each run of points that are too close to have one each: "4", "5-9".
void write_numbers(Svg& svg, const std::vector<Mark>& marks, double bottom) {
  constexpr double kClose = 12;
  Numbers numbers(bottom);
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
  // As high as its lines of text.
  const double bottom = std::max(kBottom, kTop + kLine * static_cast<double>(front.size()));
  // The fastest needs most memory, so it is on the right.
  const Scale x{number(front.back().peak_memory), number(front.front().peak_memory), kLeft, kRight};
  const Scale y{number(front.front().estimate), number(front.back().estimate), bottom, kTop};
  Svg svg;
  svg.line(kLeft, bottom, kRight, bottom, kMuted).line(kLeft, kTop, kLeft, bottom, kMuted);
  draw_ticks(svg, front, x, y, bottom);
  draw_baselines(svg, report_case, x, y);
  svg.text((kLeft + kRight) / 2, bottom + 31,
           "largest peak memory, " +
               std::string(number(front.back().peak_memory) >= number(kGiB) ? "GiB" : "MiB") +
               "; time over the fastest; diamonds: baselines",
           {.size = 10.5, .anchor = Anchor::Middle, .color = kMuted});
  std::string steps;
  for (std::size_t i = 0; i < front.size(); ++i) {
    const std::string px = coordinate(x(number(front[i].peak_memory)));
    const std::string py = coordinate(y(number(front[i].estimate)));
    steps += i == 0 ? "M" + px + " " + py : "V" + py + "H" + px;
  }
  svg.path(steps, " fill=\"none\" stroke=\"" + hex(kHeld) + "\" stroke-width=\"1.5\"");
  const double line = std::min(18.0, (bottom - kTop) / static_cast<double>(front.size()));
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < front.size(); ++i) {
    const FrontPoint& point = front[i];
    const double px = x(number(point.peak_memory)), py = y(number(point.estimate));
    const std::string label = std::to_string(i + 1);
    svg.rect(px - 4, py - 4, 8, 8, is_plan(point, report_case) ? fill(Paint::Forward) : kHeld);
    marks.push_back({px, py});
    const double baseline = kTop + 10 + line * static_cast<double>(i);
    svg.text(kRight + 22, baseline,
             shortened(label + "  " + rounded(point.estimate) + ", " + rounded(point.peak_memory) +
                           ": " + point.schedule,
                       10.5, kWidth - kRight - 26),
             {.size = 10.5});
  }
  write_numbers(svg, marks, bottom);
  return inline_svg(svg.document(kWidth, bottom + kBelow, "time and memory, " + report_case.name));
}

}  // namespace pfeife::plots
