#include "plots/timeline/layout.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "plots/figure/theme.h"

namespace pfeife::plots {
namespace {

/// Heights in pixels, by how many ranks have to find room.
struct Heights {
  double compute, communication, gap, memory;
};
constexpr double kColumnRow = 0.22 * 96, kColumnLetters = 7.0 * 96 / 72;
Heights heights_for(std::size_t ranks, bool column) {
  if (column) return {kColumnRow, 0, 0, 0};
  if (ranks <= 4) return {28, 11, 10, 40};
  if (ranks <= 8) return {22, 7, 7, 28};
  if (ranks <= 16) return {17, 5, 5, 20};
  if (ranks <= 32) return {13, 4, 4, 14};
  return {9, 3, 3, 10};
}

constexpr double kMarker = 12;  // in front of the critical rank
constexpr double kMargin = 14, kBubbleColumn = 58, kPeakColumn = 74;
constexpr double kColumnMargin = 2, kColumnFoot = 16;
constexpr double kPanelHead = 38, kPanelGap = 14, kMemoryHead = 22;

std::vector<std::vector<StageId>> stages_of(const Trace& trace) {
  std::vector<std::set<StageId>> seen(trace.ranks);
  for (const Event& event : trace.events)
    if (event.kind == TaskKind::Compute)
      for_each_action(event.cell,
                      [&](const Action& action) { seen[event.rank.index()].insert(action.stage); });
  std::vector<std::vector<StageId>> stages;
  for (const auto& rank : seen) stages.emplace_back(rank.begin(), rank.end());
  return stages;
}

bool has_memory(const Trace& trace) {
  return std::ranges::any_of(trace.memory, [](const auto& samples) { return !samples.empty(); });
}

/// Places the rows and the memory strips of a panel from `panel.top` on; rows are `stretch` times
/// as high as usual.
void place_rows(Panel& panel, const TimelineOptions& options, double stretch) {
  Heights heights = heights_for(panel.trace->ranks, options.column);
  heights.compute *= stretch;
  heights.communication *= stretch;
  heights.gap *= stretch;
  double y = panel.top + (options.column || !options.head ? 0 : kPanelHead);
  for (const RankLanes& lanes : panel.lanes) {
    Row row;
    row.compute_top = y;
    row.compute_height = heights.compute / static_cast<double>(lanes.compute_lanes);
    if (!options.column && stretch == 1)
      row.compute_height = std::max(4.0, std::floor(row.compute_height));
    y += row.compute_height * static_cast<double>(lanes.compute_lanes) + (options.column ? 0 : 1);
    row.communication_top = y;
    if (options.column) {
      row.bottom = y;
      panel.rows.push_back(row);
      continue;
    }
    row.communication_height = lanes.communication_lanes == 1
                                   ? heights.communication
                                   : std::max(2.5, heights.communication * 0.6);
    y += row.communication_height * static_cast<double>(lanes.communication_lanes);
    row.bottom = y;
    panel.rows.push_back(row);
    y += heights.gap;
  }
  panel.rows_bottom = y - heights.gap;
  y = panel.rows_bottom;
  if (options.memory && !options.column && has_memory(*panel.trace)) {
    panel.memory_height = heights.memory;
    y += kMemoryHead;
    for (std::size_t r = 0; r < panel.trace->ranks; ++r) {
      panel.memory_tops.push_back(y);
      y += heights.memory + 4;
    }
  }
  panel.bottom = y + (options.column ? kColumnFoot : kAxisFoot);
}

/// Room for the names of the ranks and their stages: what they need, but not too much.
double label_width(const TimelineLayout& layout) {
  double width = 54;
  for (const Panel& panel : layout.panels)
    for (const auto& stages : panel.stages)
      width = std::max(width, text_width(stage_list(stages), kStageList));
  return std::min(width, 130.0);
}

}  // namespace

Panel open_panel(const Trace& trace) {
  Panel panel;
  panel.trace = &trace;
  panel.lanes = lanes(trace);
  panel.stages = stages_of(trace);
  bool first = true;
  for (const Event& event : trace.events) {
    panel.scale.origin = first ? event.start : std::min(panel.scale.origin, event.start);
    panel.end = first ? event.end : std::max(panel.end, event.end);
    first = false;
  }
  return panel;
}

std::string amount(const TimelineLayout& layout, Bytes memory) {
  return layout.counts ? std::to_string(memory.value) : rounded(memory, layout.largest_peak);
}

std::string stage_list(std::span<const StageId> stages) {
  std::string text = stages.size() == 1 ? "stage " : "stages ";
  for (std::size_t i = 0; i < stages.size(); ++i)
    text += (i == 0 ? "" : ", ") + to_string(stages[i]);
  return text;
}

std::int64_t TimeScale::hundredths_at(Nanoseconds time) const {
  return std::llround(100 * (left + static_cast<double>((time - origin).count()) * pixels_per_ns));
}

double Row::top(const LaneItem& item, bool communication) const {
  const auto lane = static_cast<double>(item.lane);
  return communication ? communication_top + lane * communication_height
                       : compute_top + lane * compute_height;
}

static bool has_slices(const Trace& trace) {
  return std::ranges::any_of(trace.events, [](const Event& event) {
    const auto* action = std::get_if<Action>(&event.cell);
    return action && action->microbatch && action->microbatch->slices > 1;
  });
}

double letters(const TimelineLayout& layout, double usual) {
  return layout.column ? kColumnLetters : usual;
}

static TimelineLayout stretched_layout(std::span<const Trace> traces,
                                       const TimelineOptions& options, std::size_t legend_lines,
                                       double stretch) {
  TimelineLayout layout;
  layout.column = options.column;
  layout.width = std::max(kLeastWidth, options.width);
  layout.figures = options.width >= 480;
  layout.counts = options.counts;
  layout.slices = std::ranges::any_of(traces, has_slices);
  if (options.column) layout.figures = false;
  layout.peak_right = layout.width - (options.column ? kColumnMargin : kMargin);
  const bool peaks = layout.figures && std::ranges::any_of(traces, has_memory);
  layout.bubble_right = layout.peak_right - (peaks ? kPeakColumn : 0);
  layout.plot_right = layout.bubble_right - (layout.figures   ? kBubbleColumn
                                             : options.column ? 0
                                                              : 22);
  layout.legend_top = (options.column ? kColumnMargin : kMargin) +
                      (options.title.empty() ? 0 : 22) + (options.subtitle.empty() ? 0 : 20);

  Nanoseconds longest{1};
  for (const Trace& trace : traces) {
    layout.panels.push_back(open_panel(trace));
    const Panel& panel = layout.panels.back();
    longest = std::max(longest, panel.end - panel.scale.origin);
    for (std::size_t r = 0; r < trace.memory.size(); ++r)
      layout.largest_peak = std::max(layout.largest_peak, peak_memory(trace, RankId{r}));
    for (const auto& stages : panel.stages) layout.shades = std::max(layout.shades, stages.size());
  }
  layout.labels_left = options.column ? kColumnMargin : kMargin + kMarker;
  layout.plot_left =
      layout.labels_left + (layout.figures ? label_width(layout) : 40) + (options.column ? -4 : 8);
  const double plot_width = layout.plot_right - layout.plot_left;
  layout.axis =
      time_axis(longest, static_cast<std::size_t>(plot_width / (layout.figures ? 70 : 40)));

  double y = layout.legend_top + static_cast<double>(legend_lines) * kLegendLine + 4;
  for (std::size_t i = 0; i < layout.panels.size(); ++i) {
    Panel& panel = layout.panels[i];
    if (i < options.names.size()) panel.name = options.names[i];
    panel.scale.left = layout.plot_left;
    panel.scale.pixels_per_ns = plot_width / static_cast<double>(longest.count());
    panel.top = y;
    place_rows(panel, options, stretch);
    y = panel.bottom + kPanelGap;
  }
  layout.height = y - kPanelGap + (options.column ? 0 : 4);
  return layout;
}

TimelineLayout timeline_layout(std::span<const Trace> traces, const TimelineOptions& options,
                               std::size_t legend_lines) {
  TimelineLayout layout = stretched_layout(traces, options, legend_lines, 1);
  if (options.height == 0) return layout;
  double rows = 0;
  for (const Panel& panel : layout.panels)
    if (!panel.rows.empty()) rows += panel.rows_bottom - panel.rows.front().compute_top;
  if (rows == 0) return layout;
  constexpr double kLeastStretch = 0.2;
  layout =
      stretched_layout(traces, options, legend_lines,
                       std::max(kLeastStretch, (options.height - (layout.height - rows)) / rows));
  layout.height = std::max<double>(layout.height, options.height);
  return layout;
}

}  // namespace pfeife::plots
