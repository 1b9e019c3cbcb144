#include <algorithm>

#include "plots/figure/chart_frame.h"
#include "plots/timeline/panel_parts.h"

namespace pfeife::plots {
namespace {

constexpr double kNear = 0.35;  ///< share of the limit from which on the limit is worth its room

/// Vertical scale of one strip.
struct Strip {
  double top = 0, height = 0;
  Bytes full{1};

  double y(Bytes bytes) const {
    const double share = static_cast<double>(bytes.value) / static_cast<double>(full.value);
    return top + height * (1 - std::clamp(share, 0.0, 1.0));
  }
};

void draw_curve(Svg& svg, const TimelineLayout& layout, const Panel& panel, RankId rank,
                const Strip& strip) {
  const auto& samples = panel.trace->memory[rank.index()];
  const auto points = memory_points(samples, panel.scale);
  if (points.empty()) return;
  const double left = layout.plot_left, right = panel.scale.x(panel.end);
  const std::string base = coordinate(strip.y(Bytes{0}));
  std::string data = "M" + coordinate(points.front().x) + " " + base;
  for (const MemoryPoint& point : points)
    data += "H" + coordinate(point.x) + "V" + coordinate(strip.y(point.bytes));
  data += "H" + coordinate(right) + "V" + base + "z";
  svg.path(data, " class=\"memory\" fill=\"" + hex(kMemory) + "\"");
  const Bytes held = std::ranges::min(samples, {}, &MemorySample::bytes).bytes;
  svg.rect(left, strip.y(held), right - left, strip.y(Bytes{0}) - strip.y(held), kHeld,
           " class=\"held\"");
}

void draw_strip(Svg& svg, const TimelineLayout& layout, const Panel& panel, RankId rank,
                const Strip& strip, const TimelineOptions& options) {
  const double left = layout.plot_left, right = panel.scale.x(panel.end);
  const double bottom = strip.y(Bytes{0}), size = std::min(10.5, strip.height);
  svg.rect(left, strip.top, right - left, strip.height, mix(kIdle, kPaper, 0.5));
  svg.text(layout.labels_left, strip.top + strip.height / 2 + size * 0.36,
           "rank " + to_string(rank), {.size = size});
  if (rank.index() < panel.trace->memory.size()) {
    draw_curve(svg, layout, panel, rank, strip);
    if (layout.figures)
      svg.text(layout.peak_right, strip.top + strip.height / 2 + size * 0.36,
               amount(layout, peak_memory(*panel.trace, rank)),
               {.size = size, .anchor = Anchor::End, .color = kMuted});
  }
  svg.line(left, bottom, right, bottom, kMuted, " stroke-width=\"0.6\"");
  if (rank.index() >= options.memory_limits.size()) return;
  const Bytes limit = options.memory_limits[rank.index()];
  if (limit > strip.full) return;
  draw_limit(svg, left, strip.y(limit), right, strip.y(limit));
  if (layout.figures && (rank.index() == 0 || limit != options.memory_limits[rank.index() - 1]))
    svg.text(layout.plot_right + 6, strip.y(limit) + 3.5, "≤ " + amount(layout, limit),
             {.size = 9, .color = kAlarm});
}

std::string heading(const TimelineLayout& layout, const Panel& panel,
                    const TimelineOptions& options, Bytes full) {
  std::string text = std::string(!layout.counts  ? "memory"
                                 : layout.slices ? "slices in flight"
                                                 : "microbatches in flight") +
                     ", each strip from 0 to " + amount(layout, full);
  if (!options.memory_limits.empty()) {
    const Bytes limit = std::ranges::min(options.memory_limits);
    if (limit > full) text += " (limit " + amount(layout, limit) + ", far above)";
  }
  return panel.trace->memory.empty() ? "" : text;
}

}  // namespace

Bytes memory_top(const Trace& trace, std::span<const Bytes> limits) {
  Bytes top{1};
  for (std::size_t r = 0; r < trace.memory.size(); ++r)
    top = std::max(top, peak_memory(trace, RankId{r}));
  const Bytes limit = limits.empty() ? Bytes{0} : std::ranges::max(limits);
  const bool limit_is_near =
      static_cast<double>(top.value) >= kNear * static_cast<double>(limit.value);
  return limit_is_near ? std::max(top, limit) : top;
}

std::vector<MemoryPoint> memory_points(std::span<const MemorySample> samples,
                                       const TimeScale& scale) {
  constexpr std::int64_t bucket = 50;  // hundredths of a pixel
  std::vector<MemoryPoint> points;
  for (std::size_t i = 0; i < samples.size();) {
    const std::int64_t first = scale.hundredths_at(samples[i].time);
    Bytes highest = samples[i].bytes;
    std::size_t next = i + 1;
    for (; next < samples.size(); ++next) {
      if (scale.hundredths_at(samples[next].time) >= first + bucket) break;
      highest = std::max(highest, samples[next].bytes);
    }
    const Bytes last = samples[next - 1].bytes;
    const double x = static_cast<double>(first) / 100;
    points.push_back({x, highest});
    if (last != highest)
      points.push_back(
          {static_cast<double>(scale.hundredths_at(samples[next - 1].time)) / 100, last});
    i = next;
  }
  return points;
}

void draw_memory(Svg& svg, const TimelineLayout& layout, const Panel& panel,
                 const TimelineOptions& options) {
  const Bytes full = memory_top(*panel.trace, options.memory_limits);
  svg.text(layout.plot_left, panel.memory_tops.front() - 6, heading(layout, panel, options, full),
           {.size = 10, .color = kMuted});
  for (std::size_t r = 0; r < panel.memory_tops.size(); ++r)
    draw_strip(svg, layout, panel, RankId{r}, {panel.memory_tops[r], panel.memory_height, full},
               options);
}

}  // namespace pfeife::plots
