#include <algorithm>

#include "plots/figure/axis.h"
#include "plots/figure/svg.h"
#include "plots/figure/theme.h"
#include "plots/timeline/pictures.h"

namespace pfeife {
namespace {

using namespace plots;

constexpr double kMargin = 12, kFigures = 230, kFoot = 26, kHead = 24;
constexpr std::size_t kMostRows = 16;

/// Where the plot is, and the step that it shows.
struct Plane {
  Nanoseconds begin{0}, end{1};
  double left = 0, right = 0;

  double x(Nanoseconds time) const {
    return left + (right - left) * static_cast<double>((time - begin).count()) /
                      static_cast<double>((end - begin).count());
  }
};

double row_height(std::size_t rows) { return rows <= 8 ? 26 : 16; }

/// Mean load of each pixel of the plot.
std::vector<double> columns(const LinkLoad& link, const Plane& plane) {
  std::vector<double> columns(static_cast<std::size_t>(plane.right - plane.left) + 1);
  for (std::size_t i = 0; i + 1 < link.samples.size(); ++i) {
    const double to = plane.x(link.samples[i + 1].time) - plane.left;
    for (double at = plane.x(link.samples[i].time) - plane.left; at < to;) {
      const auto column = static_cast<std::size_t>(at);
      const double next = std::min(to, static_cast<double>(column + 1));
      columns[column] += link.samples[i].share * (next - at);
      at = next;
    }
  }
  return columns;
}

double mean_load(const LinkLoad& link, const Plane& plane) {
  double sum = 0;
  for (const double load : columns(link, plane)) sum += load;
  return sum / (plane.right - plane.left);
}

void draw_load(Svg& svg, const LinkLoad& link, const Plane& plane, double top, double height) {
  std::string data = "M" + coordinate(plane.left) + " " + coordinate(top + height);
  const std::vector<double> loads = columns(link, plane);
  double before = 0;
  for (std::size_t c = 0; c < loads.size(); ++c) {
    if (loads[c] == before) continue;
    before = loads[c];
    data += "H" + coordinate(plane.left + static_cast<double>(c)) + "V" +
            coordinate(top + height * (1 - std::min(1.0, before)));
  }
  data += "H" + coordinate(plane.right) + "V" + coordinate(top + height) + "z";
  svg.path(data, " class=\"load\" fill=\"" + hex(kSeries[0]) + "\"");
}

/// "73.1 % of 3.12 GB/s, slows by 1.203 s", in the axis' unit; nothing of what that shows as 0.
std::string figures(const LinkLoad& link, const Plane& plane, const TimeAxis& axis) {
  std::string text =
      percent(mean_load(link, plane)) + " of " + fixed(link.capacity.value / 1e9, 2) + " GB/s";
  if (20'000 * link.slowed >= axis.unit_size) text += ", slows by " + rounded(link.slowed, axis);
  return text;
}

void draw_axis(Svg& svg, const Plane& plane, const TimeAxis& axis, double y) {
  svg.line(plane.left, y, plane.right, y, kMuted, " stroke-width=\"0.8\"");
  for (const Nanoseconds tick : axis.ticks) {
    const double x = plane.x(plane.begin + tick);
    svg.line(x, y, x, y + 4, kMuted, " stroke-width=\"0.8\"");
    svg.text(x, y + 15, exact(tick, axis), {.size = 10, .anchor = Anchor::Middle});
  }
  svg.text(plane.right + 8, y + 15, axis.unit, {.size = 10});
}

}  // namespace

std::string link_loads_svg(const Trace& trace, int width) {
  if (trace.links.empty()) return "";
  std::vector<const LinkLoad*> links;
  double labels = 0;
  for (const LinkLoad& link : trace.links) {
    links.push_back(&link);
    labels = std::max(labels, text_width(link.link, 10.5));
  }
  const double whole = std::max(640, width);
  labels = std::min(labels, whole / 5);
  Plane plane{.left = kMargin + labels + 8, .right = whole - kMargin - kFigures};
  plane.begin = std::ranges::min(trace.events, {}, &Event::start).start;
  plane.end = plane.begin + std::max(Nanoseconds{1}, step_time(trace));
  std::ranges::stable_sort(links, std::greater{},
                           [&](const LinkLoad* link) { return mean_load(*link, plane); });
  const std::size_t left_out = links.size() - std::min(links.size(), kMostRows);
  links.resize(links.size() - left_out);
  const TimeAxis axis = time_axis(plane.end - plane.begin, 12);
  Svg svg;
  const double height = row_height(links.size());
  std::string head = "share of each link's capacity that is taken, each row from 0 to 100 %";
  if (left_out > 0) head += "; " + std::to_string(left_out) + " links that are less full left out";
  svg.text(plane.left, 15, head, {.size = 10, .color = kMuted});
  double y = kHead;
  for (const LinkLoad* link : links) {
    svg.rect(plane.left, y, plane.right - plane.left, height, kIdle);
    draw_load(svg, *link, plane, y, height);
    svg.text(plane.left - 8, y + height / 2 + 3.6, shortened(link->link, 10.5, labels),
             {.size = 10.5, .anchor = Anchor::End});
    svg.text(plane.right + 8, y + height / 2 + 3.6, figures(*link, plane, axis), {.size = 10.5});
    y += height + 4;
  }
  draw_axis(svg, plane, axis, y);
  return svg.document(whole, y + kFoot, "load of each link");
}

}  // namespace pfeife
