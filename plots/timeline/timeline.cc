#include "plots/timeline/timeline.h"

#include <algorithm>
#include <array>

#include "plots/timeline/panel_parts.h"

namespace pfeife {
namespace {

using namespace plots;

/// One entry of the legend: its drawing at (x, middle), and what it says.
struct LegendEntry {
  std::string drawing;  ///< from x = 0, around y = 0
  double drawing_width = 0;
  std::string text;

  double width(double size) const { return drawing_width + 5 + text_width(text, size) + 14; }
};
constexpr double kLegendLetters = 10.5;

std::string swatch(Paint paint, std::size_t shades, double size) {
  Svg svg;
  const double width = shades == 1 ? 20 : 15;
  for (std::size_t k = 0; k < shades; ++k)
    svg.rect(static_cast<double>(k) * width, -6.5, width, 13, fill(paint, k, shades));
  svg.text(
      static_cast<double>(shades) * width / 2, 3.5, letter(paint),
      {.size = size, .anchor = Anchor::Middle, .color = ink_on(fill(paint, shades / 2, shades))});
  return svg.body();
}

std::vector<LegendEntry> legend(std::span<const Trace> traces, const TimelineLayout& layout,
                                bool dense, const TimelineOptions& options) {
  const std::size_t shades = layout.shades;
  std::array<bool, kPaints> present{};
  bool launches = false, waits = false;
  for (const Trace& trace : traces)
    for (const Event& event : trace.events) {
      if (event.end > event.start) present[static_cast<std::size_t>(paint(event))] = true;
      launches = launches || event.launch > Nanoseconds{0};
      waits = waits || event.waited_for.has_value();
    }
  std::vector<LegendEntry> entries;
  for (std::size_t p = 0; p < kPaints; ++p) {
    const Paint kind = static_cast<Paint>(p);
    const bool shaded = kind != Paint::Optimizer && kind != Paint::Reduction &&
                        kind != Paint::Overlap && kind != Paint::HeadCollective;
    const std::size_t count = shaded ? shades : 1;
    if (options.column && (kind == Paint::SendForward || kind == Paint::SendBackward)) continue;
    if (present[p])
      entries.push_back({swatch(kind, count, letters(layout, 9.5)),
                         (count == 1 ? 20 : 15) * static_cast<double>(count), name(kind)});
  }
  entries.push_back({Svg().rect(0, -6.5, 20, 13, kIdle).body(), 20, "idle"});
  if (options.column) return entries;
  if (launches)
    entries.push_back(
        {Svg().rect(0, -6.5, 6, 13, kInk, " fill-opacity=\"0.55\"").body(), 6, "launch"});
  if (waits && options.critical_path)
    entries.push_back(
        {Svg().line(0, 0, 20, 0, kInk, " stroke-width=\"1.6\"").body(), 20, "critical path"});
  entries.push_back(
      {Svg().path("M0 -4l7 4l-7 4z", " fill=\"" + hex(kInk) + "\"").body(), 7, "critical rank"});
  if (shades > 1) entries.push_back({"", 0, "paler = later stage of the rank"});
  if (dense) entries.push_back({"", 0, "heights = shares of each pixel's time"});
  return entries;
}

/// Breaks the entries into lines of at most `width`; returns [entry] line.
std::vector<std::size_t> break_lines(std::span<const LegendEntry> entries, double width,
                                     double size) {
  std::vector<std::size_t> line_of;
  double used = 0;
  std::size_t line = 0;
  for (const LegendEntry& entry : entries) {
    if (used > 0 && used + entry.width(size) > width) ++line, used = 0;
    used += entry.width(size);
    line_of.push_back(line);
  }
  return line_of;
}

void draw_legend(Svg& svg, const TimelineLayout& layout, std::span<const LegendEntry> entries,
                 std::span<const std::size_t> line_of) {
  const double margin = layout.column ? 2 : 14, size = letters(layout, kLegendLetters);
  double x = margin;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0 && line_of[i] != line_of[i - 1]) x = margin;
    const double middle = layout.legend_top + (static_cast<double>(line_of[i]) + 0.5) * kLegendLine;
    svg.open_group(" transform=\"translate(" + coordinate(x) + " " + coordinate(middle) + ")\"")
        .raw(entries[i].drawing)
        .text(entries[i].drawing_width + (entries[i].drawing_width > 0 ? 5 : 0), 3.8,
              entries[i].text, {.size = size})
        .close_group();
    x += entries[i].width(size);
  }
}

void draw_head(Svg& svg, const TimelineLayout& layout, const Panel& panel) {
  const Trace& trace = *panel.trace;
  std::string source = to_string(trace.source);
  if (!panel.name.empty()) source = panel.name + ", " + source;
  const double baseline = panel.top + 16, room = layout.plot_right - 14;
  source = shortened(source, 13, room * 0.6);
  svg.text(14, baseline, source, {.size = 13, .bold = true});
  std::string facts =
      "step " + rounded(step_time(trace), layout.axis) + ", bubble " + percent(bubble(trace));
  std::string memory;
  if (!panel.memory_tops.empty()) {
    Bytes peak;
    for (std::size_t r = 0; r < trace.ranks; ++r)
      peak = std::max(peak, peak_memory(trace, RankId{r}));
    memory = layout.counts ? ", at most " + amount(layout, peak) +
                                 (layout.slices ? " slices in flight" : " microbatches in flight")
                           : ", peak memory " + amount(layout, peak);
  }
  const double left = 14 + text_width(source, 13) * 1.06 + 10;
  const double end = layout.figures ? layout.plot_right : layout.width - 14;
  // Whole, or not at all: above the strips stands what they reach to.
  if (text_width(facts + memory, 12) <= end - left) facts += memory;
  svg.text(left, baseline, shortened(facts, 12, end - left), {.size = 12});
  if (!layout.figures) return;
  const double head = panel.top + 31;
  svg.text(layout.bubble_right, head, "bubble",
           {.size = 10, .anchor = Anchor::End, .color = kMuted});
  if (!trace.memory.empty())
    svg.text(layout.peak_right, head, layout.counts ? "in flight" : "peak",
             {.size = 10, .anchor = Anchor::End, .color = kMuted});
}

void draw_axis(Svg& svg, const TimelineLayout& layout, const Panel& panel) {
  const double y = panel.bottom - (layout.column ? 14 : 24), size = letters(layout, 10);
  svg.line(layout.plot_left, y, layout.plot_right, y, kMuted, " stroke-width=\"0.8\"");
  for (const Nanoseconds tick : layout.axis.ticks) {
    const double x = panel.scale.x(panel.scale.origin + tick);
    svg.line(x, y, x, y + 4, kMuted, " stroke-width=\"0.8\"");
    if (!layout.column) {
      svg.text(x, y + 15, exact(tick, layout.axis), {.size = size, .anchor = Anchor::Middle});
      continue;
    }
    const bool is_last = tick == layout.axis.ticks.back();
    const std::string text = exact(tick, layout.axis) + (is_last ? " " + layout.axis.unit : "");
    const double room = text_width(text, size) / 2;
    svg.text(std::min(x, layout.plot_right - room), y + 5 + 0.8 * size, text,
             {.size = size, .anchor = Anchor::Middle});
  }
  if (!layout.column) svg.text(layout.plot_right + 14, y + 4, layout.axis.unit, {.size = size});
}

}  // namespace

TimelineOptions column_options() {
  return {.width = 317, .column = true, .memory = false, .critical_path = false};
}

std::string timeline_svg(std::span<const Trace> traces, const TimelineOptions& options) {
  const TimelineLayout draft = timeline_layout(traces, options, 1);
  const auto entries = legend(traces, draft, std::ranges::any_of(draft.panels, is_dense), options);
  const auto line_of =
      break_lines(entries, std::max(kLeastWidth, options.width) - (options.column ? 4.0 : 28.0),
                  letters(draft, kLegendLetters));
  const TimelineLayout layout =
      timeline_layout(traces, options, options.legend ? line_of.back() + 1 : 0);

  Svg svg;
  if (!options.title.empty())
    svg.text(14, 29, shortened(options.title, 15, layout.width - 28), {.size = 15, .bold = true});
  if (!options.subtitle.empty())
    svg.text(14, layout.legend_top - 7, shortened(options.subtitle, 11, layout.width - 28),
             {.color = kMuted});
  if (options.legend) draw_legend(svg, layout, entries, line_of);
  for (const Panel& panel : layout.panels) {
    svg.open_group(" class=\"" + to_string(panel.trace->source) + "\"");
    if (!layout.column && options.head) draw_head(svg, layout, panel);
    if (!panel.rows.empty()) draw_rows(svg, layout, panel, options);
    // Whoever has little room may leave the strips out and move what is below them up: the report,
    // when it is printed.
    if (!panel.memory_tops.empty()) {
      svg.open_group(" class=\"strips\" data-height=\"" +
                     coordinate(panel.bottom - kAxisFoot - panel.rows_bottom) + "\"");
      draw_memory(svg, layout, panel, options);
      svg.close_group();
    }
    svg.open_group(" class=\"axis\"");
    draw_axis(svg, layout, panel);
    svg.close_group().close_group();
  }
  const std::string what = options.title.empty() ? "pipeline timeline" : options.title;
  return svg.document(layout.width, layout.height, what);
}

std::string timeline_svg(const Trace& trace, const TimelineOptions& options) {
  return timeline_svg(std::span(&trace, 1), options);
}

}  // namespace pfeife
