#include <algorithm>

#include "plots/timeline/panel_parts.h"

namespace pfeife::plots {
namespace {

void draw_names(Svg& svg, const TimelineLayout& layout, const Panel& panel, RankId rank,
                bool critical) {
  const Row& row = panel.rows[rank.index()];
  const double left = layout.labels_left, room = layout.plot_left - left - 6;
  const double height = row.bottom - row.compute_top;
  const auto& stages = panel.stages[rank.index()];
  const bool two_lines = height >= 26 && !stages.empty() && layout.figures;
  const double size = std::min(letters(layout, 11.5), height);
  if (layout.column) critical = false;
  const double baseline = row.compute_top + (two_lines ? 11 : height / 2 + size * 0.36);
  if (critical)
    svg.path(
        "M" + coordinate(left - 10) + " " + coordinate(baseline - size * 0.36 - 4) + "l7 4l-7 4z",
        " fill=\"" + hex(kInk) + "\"");
  svg.text(left, baseline, "rank " + to_string(rank), {.size = size, .bold = critical});
  if (two_lines)
    svg.text(left, baseline + 12, shortened(stage_list(stages), kStageList, room),
             {.size = kStageList, .color = kMuted});
}

void draw_figures(Svg& svg, const TimelineLayout& layout, const Panel& panel, RankId rank,
                  const TimelineOptions& options) {
  if (!layout.figures) return;
  const Row& row = panel.rows[rank.index()];
  const double height = row.communication_top - row.compute_top, size = std::min(11.0, height);
  const double baseline = row.compute_top + height / 2 + size * 0.36;
  svg.text(layout.bubble_right, baseline, percent(bubble(*panel.trace, rank)),
           {.size = size, .anchor = Anchor::End});
  if (rank.index() >= panel.trace->memory.size() || panel.trace->memory[rank.index()].empty())
    return;
  const Bytes peak = peak_memory(*panel.trace, rank);
  const bool over =
      rank.index() < options.memory_limits.size() && peak > options.memory_limits[rank.index()];
  svg.text(layout.peak_right, baseline, amount(layout, peak),
           {.size = size, .anchor = Anchor::End, .color = over ? kAlarm : kInk, .bold = over});
}

/// The empty lane that shows through where nothing runs.
void draw_ground(Svg& svg, const TimelineLayout& layout, const Panel& panel) {
  const double left = layout.plot_left, width = panel.scale.x(panel.end) - left;
  for (const Row& row : panel.rows) {
    const double gap = layout.column ? 0 : 1;
    svg.rect(left, row.compute_top, width, row.communication_top - row.compute_top - gap, kIdle);
    if (layout.column) continue;
    svg.rect(left, row.communication_top, width, row.bottom - row.communication_top,
             mix(kIdle, kPaper, 0.5));
  }
}

/// Lines from the end of a transfer, on its sender's row, to the receiver's computations.
void draw_arrows(Svg& svg, const Panel& panel) {
  for (const Paint way : {Paint::SendForward, Paint::SendBackward}) {
    std::string lines, heads;
    for (std::size_t r = 0; r < panel.rows.size(); ++r)
      for (const LaneItem& item : panel.lanes[r].communication) {
        const Event& event = panel.trace->events[item.event];
        if (paint(event) != way) continue;
        const Row &own = panel.rows[r], &other = panel.rows[event.peer.index()];
        const bool down = other.compute_top > own.compute_top;
        const std::string x = coordinate(panel.scale.x(event.end));
        const double from = own.top(item, true) + (down ? own.communication_height : 0);
        const double to = down ? other.compute_top : other.communication_top - 1;
        lines += "M" + x + " " + coordinate(from) + "V" + coordinate(to);
        heads += "M" + x + " " + coordinate(to) + (down ? "l-2.2 -4.5h4.4z" : "l-2.2 4.5h4.4z");
      }
    const std::string color = hex(mix(fill(way), kInk, 0.35));
    svg.path(lines,
             " class=\"arrows\" fill=\"none\" stroke=\"" + color + "\" stroke-width=\"0.8\"");
    svg.path(heads, " fill=\"" + color + "\"");
  }
}

/// The leading part of each box that is launch overhead, if it is wide enough to be seen.
void draw_launches(Svg& svg, const Panel& panel) {
  std::string data;
  for (std::size_t r = 0; r < panel.rows.size(); ++r)
    for (const LaneItem& item : panel.lanes[r].compute) {
      const Event& event = panel.trace->events[item.event];
      const double left = panel.scale.x(event.start);
      const double width = panel.scale.x(event.start + event.launch) - left;
      if (width < 0.5) continue;
      data += "M" + coordinate(left) + " " + coordinate(panel.rows[r].top(item, false)) + "h" +
              coordinate(width) + "v" + coordinate(panel.rows[r].compute_height) + "h" +
              coordinate(-width) + "z";
    }
  if (!data.empty())
    svg.path(data, " class=\"launch\" fill=\"" + hex(kInk) + "\" fill-opacity=\"0.55\"");
}

constexpr double kInvisible = 0.5;  ///< pixels; what is shorter cannot be told from its neighbours

/// Pieces that end less than `finest` pixels after the last one drawn began are part of it.
void draw_critical_path(Svg& svg, const Panel& panel, double finest) {
  std::vector<double> y(panel.trace->events.size());
  for (std::size_t r = 0; r < panel.rows.size(); ++r) {
    const Row& row = panel.rows[r];
    for (const LaneItem& item : panel.lanes[r].compute)
      y[item.event] = row.top(item, false) + row.compute_height - 1;
    for (const LaneItem& item : panel.lanes[r].communication)
      if (!item.guest) y[item.event] = row.top(item, true) + row.communication_height - 1;
  }
  std::string data;
  double begun = 0;
  for (const std::size_t i : critical_path(*panel.trace)) {
    const Event& event = panel.trace->events[i];
    const double left = panel.scale.x(event.start), right = panel.scale.x(event.end);
    if (!data.empty() && right - begun < finest) continue;
    begun = left;
    data += (data.empty() ? "M" : "L") + coordinate(left) + " " + coordinate(y[i]) + "H" +
            coordinate(right);
  }
  svg.path(data, " class=\"critical\" fill=\"none\" stroke=\"" + hex(kInk) +
                     "\" stroke-width=\"1.4\" stroke-linejoin=\"round\"");
}

}  // namespace

bool draws_arrows(const TimelineLayout& layout, const Panel& panel) {
  constexpr double room = 22;  // pixels a transfer needs, or the arrows become a fence
  std::size_t most = 0;
  for (const RankLanes& lanes : panel.lanes) most = std::max(most, lanes.communication.size());
  return static_cast<double>(most) * room <= layout.plot_right - layout.plot_left;
}

std::vector<std::size_t> critical_path(const Trace& trace) {
  std::vector<std::size_t> path;
  if (trace.events.empty()) return path;
  const auto last = std::ranges::max_element(trace.events, {}, &Event::end);
  std::optional<std::size_t> at = static_cast<std::size_t>(last - trace.events.begin());
  while (at && *at < trace.events.size() && path.size() < trace.events.size()) {
    path.push_back(*at);
    at = trace.events[*at].waited_for;
  }
  std::ranges::reverse(path);
  return path;
}

void draw_rows(Svg& svg, const TimelineLayout& layout, const Panel& panel,
               const TimelineOptions& options) {
  draw_ground(svg, layout, panel);
  const std::vector<Nanoseconds> ruled =
      layout.column ? std::vector<Nanoseconds>{} : layout.axis.ticks;
  for (const Nanoseconds tick : ruled) {
    const double x = panel.scale.x(panel.scale.origin + tick);
    svg.line(x, panel.rows.front().compute_top, x, panel.rows_bottom, kRule,
             " stroke-width=\"0.6\"");
  }
  const bool arrows = !layout.column && draws_arrows(layout, panel), dense = is_dense(panel);
  const std::vector<LabelStyle> styles =
      dense ? std::vector<LabelStyle>{} : label_styles(layout, panel);
  const RankId critical = critical_rank(*panel.trace);
  if (arrows) draw_arrows(svg, panel);  // under the boxes: seen between the rows only
  for (std::size_t r = 0; r < panel.rows.size(); ++r) {
    const RankId rank{r};
    draw_names(svg, layout, panel, rank, rank == critical && !panel.trace->events.empty());
    if (dense)
      draw_shares(svg, layout, panel, rank);
    else
      draw_boxes(svg, layout, panel, rank, styles);
    draw_figures(svg, layout, panel, rank, options);
  }
  if (layout.column)  // rows touch, and thin boxes have no edges
    for (std::size_t r = 0; r + 1 < panel.rows.size(); ++r)
      svg.line(layout.plot_left, panel.rows[r].bottom, panel.scale.x(panel.end),
               panel.rows[r].bottom, kEdge, " stroke-width=\"1\"");
  draw_launches(svg, panel);
  if (options.critical_path) draw_critical_path(svg, panel, dense ? kInvisible : 0);
}

}  // namespace pfeife::plots
