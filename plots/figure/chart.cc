#include "plots/figure/chart.h"

#include <algorithm>
#include <cmath>

#include "plots/figure/chart_axis.h"

namespace pfeife {
namespace {

using namespace plots;

constexpr LineLook kBound{.color = kMuted, .mark = Mark::Circle, .dash = "3 2", .width = 1};

/// The axes of a panel.
struct PanelAxes {
  KeyAxis keys;    ///< of x, where it is swept
  ValueAxis x, y;  ///< x where it is memory
  bool x_is_value = false;
};

PanelAxes axes_of(const Chart& chart, const ChartPanel& panel) {
  std::vector<double> xs, ys;
  const auto add = [&](const ChartPoint& point) {
    xs.push_back(point.x);
    ys.push_back(point.y);
  };
  for (const ChartLine& line : panel.lines) std::ranges::for_each(line.points, add);
  PanelAxes axes;
  axes.x_is_value = chart.memory_is_x;
  axes.x = value_axis(xs);
  axes.y = value_axis(ys);
  for (const ChartPoint& point : panel.bound) axes.y = taking_in(axes.y, point.y);
  ValueAxis& limited = chart.memory_is_x ? axes.x : axes.y;
  if (panel.limit) limited = taking_in(limited, *panel.limit);
  axes.keys = chart.x_words.empty() ? KeyAxis::of_numbers(xs) : KeyAxis::of_words(chart.x_words);
  return axes;
}

/// From values to pixels. Outliers stand in the middle of their strip.
struct PlotScale {
  PanelRoom plot;                    ///< without strips
  double strip = 0, side_strip = 0;  ///< height of one, width of one at a side
  PanelAxes axes;

  double place(const ValueAxis& axis, double value, double from, double to) const {
    const double away = to > from ? side_strip : -strip;  // y goes upwards
    const double into = to > from ? 0.25 : 0.62;
    if (axis.is_above(value)) return to + away * into;
    if (axis.is_below(value)) return from - away * (1 - into);
    return from + (to - from) * (value - axis.low) / (axis.high - axis.low);
  }
  double x(double value) const {
    return axes.x_is_value ? place(axes.x, value, plot.left, plot.right)
                           : plot.left + (plot.right - plot.left) * axes.keys.share(value);
  }
  double y(double value) const { return place(axes.y, value, plot.bottom, plot.top); }
};

PlotScale scale_of(const PanelRoom& room, const PanelAxes& axes, const FigureStyle& style) {
  PlotScale scale{room, 1.7 * style.font, 4 * style.font, axes};
  if (axes.y.outliers_above) scale.plot.top += scale.strip;
  if (axes.y.outliers_below) scale.plot.bottom -= scale.strip;
  if (axes.x_is_value && axes.x.outliers_above) scale.plot.right -= scale.side_strip;
  if (axes.x_is_value && axes.x.outliers_below) scale.plot.left += scale.side_strip;
  if (!axes.x_is_value) {  // marks stand off the axis
    const double inset = std::min(0.8 * style.font, 0.06 * (room.right - room.left));
    scale.plot.left += inset;
    scale.plot.right -= inset;
  }
  return scale;
}

/// A torn line from (x1, y1) to (x2, y2), level or upright.
std::string torn_line(double x1, double y1, double x2, double y2) {
  constexpr double kTooth = 5, kDepth = 2.2;
  const double length = std::max(std::fabs(x2 - x1), std::fabs(y2 - y1));
  const auto teeth = static_cast<int>(std::max(2.0, std::round(length / kTooth)));
  std::string data;
  for (int i = 0; i <= teeth; ++i) {
    const double share = static_cast<double>(i) / teeth, off = i % 2 == 0 ? kDepth : -kDepth;
    const bool level = y1 == y2;
    data += (i == 0 ? "M" : "L") + coordinate(x1 + (x2 - x1) * share + (level ? 0 : off)) + " " +
            coordinate(y1 + (y2 - y1) * share + (level ? off : 0));
  }
  return data;
}

/// Where an axis is broken; what leads there is torn, too.
void draw_tears(Svg& svg, const PanelRoom& room, const PlotScale& scale) {
  const auto tear = [&](double x1, double y1, double x2, double y2) {
    const std::string data = torn_line(x1, y1, x2, y2);
    svg.path(data,
             " class=\"torn\" fill=\"none\" stroke=\"" + hex(kEdge) + "\" stroke-width=\"4\"");
    svg.path(data, " fill=\"none\" stroke=\"" + hex(mix(kMuted, kPaper, 0.4)) +
                       "\" stroke-width=\"0.8\"");
  };
  const ValueAxis &x = scale.axes.x, &y = scale.axes.y;
  if (y.outliers_above) tear(room.left - 3, scale.plot.top, room.right, scale.plot.top);
  if (y.outliers_below) tear(room.left - 3, scale.plot.bottom, room.right, scale.plot.bottom);
  if (!scale.axes.x_is_value) return;
  if (x.outliers_above) tear(scale.plot.right, room.top, scale.plot.right, room.bottom + 3);
  if (x.outliers_below) tear(scale.plot.left, room.top, scale.plot.left, room.bottom + 3);
}

/// Ticks of an axis of which as many as have room are written, the first and the last always.
void draw_x_ticks(Svg& svg, const PanelRoom& room, const PlotScale& scale,
                  std::span<const AxisTick> ticks, const FigureStyle& style) {
  double free_from = -1e9;
  const auto width = [&](const AxisTick& tick) { return text_width(tick.text, style.font); };
  const bool words = !ticks.empty() && !scale.axes.x_is_value;
  const double last = words ? scale.x(ticks.back().value) - width(ticks.back()) / 2 : 1e9;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double x = scale.x(ticks[i].value), half = width(ticks[i]) / 2;
    svg.line(x, room.bottom, x, room.bottom + 3, kInk, " stroke-width=\"0.7\"");
    const bool is_last = i + 1 == ticks.size();
    if (x - half < free_from || (!is_last && x + half + 0.4 * style.font > last)) continue;
    free_from = x + half + 0.4 * style.font;
    svg.text(x, room.bottom + 4 + style.font, ticks[i].text,
             {.size = style.font, .anchor = Anchor::Middle});
  }
}

std::vector<AxisTick> y_ticks(const PlotScale& scale, const FigureStyle& style) {
  return value_ticks(
      scale.axes.y,
      static_cast<std::size_t>((scale.plot.bottom - scale.plot.top) / (1.7 * style.font)) + 1);
}

void draw_axes(Svg& svg, const ChartPanel& panel, const PanelRoom& room, const PlotScale& scale,
               const FigureStyle& style) {
  for (const AxisTick& tick : y_ticks(scale, style)) {
    const double y = scale.y(tick.value);
    svg.line(room.left, y, room.right, y, kRule, " stroke-width=\"0.6\"");
    svg.line(room.left - 3, y, room.left, y, kInk, " stroke-width=\"0.7\"");
    svg.text(room.left - 5, y + 0.36 * style.font, tick.text,
             {.size = style.font, .anchor = Anchor::End});
  }
  const auto most = static_cast<std::size_t>((room.right - room.left) / (4 * style.font)) + 1;
  draw_x_ticks(svg, room, scale,
               scale.axes.x_is_value ? value_ticks(scale.axes.x, most) : scale.axes.keys.ticks(),
               style);
  svg.path("M" + coordinate(room.left) + " " + coordinate(room.top) + "V" +
               coordinate(room.bottom) + "H" + coordinate(room.right),
           " fill=\"none\" stroke=\"" + hex(kInk) + "\" stroke-width=\"0.8\"");
  svg.text((room.left + room.right) / 2, room.top - 0.5 * style.font, panel.title,
           {.size = style.font, .anchor = Anchor::Middle});
}

/// The part of a line inside the plot; to outliers it goes as far as the tear.
void draw_line(Svg& svg, std::span<const ChartPoint> points, const LineLook& look,
               const PlotScale& scale, std::string_view kind) {
  std::string data;
  for (const ChartPoint& point : points)
    data += (data.empty() ? "M" : "L") + coordinate(scale.x(point.x)) + " " +
            coordinate(scale.y(point.y));
  if (points.size() > 1)
    svg.path(data, " class=\"" + std::string(kind) + "\" fill=\"none\" stroke=\"" +
                       hex(look.color) + "\"" + stroke_attributes(look) +
                       " stroke-linejoin=\"round\"");
}

/// Values of outliers beside their marks, where there is room.
class OutlierLabels {
 public:
  OutlierLabels(Svg& svg, const PanelRoom& room, const FigureStyle& style)
      : svg_(svg), room_(room), style_(style) {}

  void add(double x, double y, double value, double radius) {
    const std::string text = fixed(value, value < 10 ? 1 : 0);
    const double width = text_width(text, style_.font), half = 0.5 * style_.font;
    double left = x + radius + 2;
    if (left + width > room_.right + 0.5 * style_.font) left = x - radius - 2 - width;
    const PanelRoom place{left, left + width, y - half, y + half};
    for (const PanelRoom& taken : taken_)
      if (place.left < taken.right && taken.left < place.right && place.top < taken.bottom &&
          taken.top < place.bottom)
        return;
    taken_.push_back(place);
    taken_.push_back({x - radius, x + radius, y - half, y + half});
    svg_.rect(left - 1, y - half, 0.92 * width + 2, 2 * half, kPaper);
    svg_.text(left, y + 0.36 * style_.font, text, {.size = style_.font});
  }

 private:
  Svg& svg_;
  PanelRoom room_;
  FigureStyle style_;
  std::vector<PanelRoom> taken_;
};

void draw_panel(Svg& svg, const Chart& chart, const ChartPanel& panel, const PanelRoom& room,
                const FigureStyle& style) {
  const PlotScale scale = scale_of(room, axes_of(chart, panel), style);
  const double radius = 0.26 * style.font;
  svg.open_group(" class=\"panel\"");
  draw_axes(svg, panel, room, scale, style);
  const bool bound_is_seen = std::ranges::all_of(
      panel.bound, [&](const ChartPoint& point) { return scale.axes.y.holds(point.y); });
  if (bound_is_seen) draw_line(svg, panel.bound, kBound, scale, "bound");
  if (chart.joined)
    for (const ChartLine& line : panel.lines) draw_line(svg, line.points, line.look, scale, "line");
  draw_tears(svg, room, scale);
  const ValueAxis& limited = chart.memory_is_x ? scale.axes.x : scale.axes.y;
  if (panel.limit && limited.holds(*panel.limit)) {
    const double at = chart.memory_is_x ? scale.x(*panel.limit) : scale.y(*panel.limit);
    if (chart.memory_is_x)
      draw_limit(svg, at, room.top, at, room.bottom);
    else
      draw_limit(svg, room.left, at, room.right, at);
  }
  OutlierLabels labels(svg, room, style);
  for (const ChartLine& line : panel.lines)
    for (const ChartPoint& point : line.points) {
      const double x = scale.x(point.x), y = scale.y(point.y);
      draw_mark(svg, line.look, x, y, radius, !point.fits, point.hint);
      if (!scale.axes.y.holds(point.y)) labels.add(x, y, point.y, 1.5 * radius);
      if (scale.axes.x_is_value && !scale.axes.x.holds(point.x))
        labels.add(x, y, point.x, 1.5 * radius);
    }
  svg.close_group();
}

/// Each line once, in the order of the panels; what a hollow mark, a bound and a limit are.
std::vector<LegendItem> legend_of(const Chart& chart, const FigureStyle& style) {
  std::vector<LegendItem> entries;
  bool limit = false, bound = false, hollow = false;
  for (const ChartPanel& panel : chart.panels) {
    const PanelAxes axes = axes_of(chart, panel);
    limit = limit || (panel.limit && (chart.memory_is_x ? axes.x : axes.y).holds(*panel.limit));
    bound = bound || !panel.bound.empty();
    for (const ChartLine& line : panel.lines) {
      for (const ChartPoint& point : line.points) hollow = hollow || !point.fits;
      if (std::ranges::find(entries, line.name, &LegendItem::name) == entries.end())
        entries.push_back(line_item(line.name, line.look, style));
    }
  }
  const double width = swatch_width(style);
  if (bound) {
    Svg svg;
    svg.line(0, 0, width, 0, kBound.color, stroke_attributes(kBound));
    entries.push_back({chart.bound_name, svg.body()});
  }
  if (limit) {
    Svg svg;
    draw_limit(svg, 0, 0, width, 0);
    entries.push_back({chart.limit_name, svg.body()});
  }
  if (hollow) {
    Svg svg;
    draw_mark(svg, kBound, width / 2, 0, 0.3 * style.font, true);
    entries.push_back({"does not fit", svg.body()});
  }
  return entries;
}

}  // namespace

std::string chart_svg(const Chart& chart, const FigureStyle& style) {
  const double width = style.width, edge = frame_edge(style), right = width - edge;
  Svg svg;
  double y = draw_frame_title(svg, chart.title, style);
  y = draw_chart_legend(svg, legend_of(chart, style), edge, right, y, style) + 0.5 * style.font;

  bool titles = false;
  double tick_width = 0;
  for (const ChartPanel& panel : chart.panels) {
    titles = titles || !panel.title.empty();
    const PlotScale draft = scale_of({0, 100, 0, 200}, axes_of(chart, panel), style);
    for (const AxisTick& tick : y_ticks(draft, style))
      tick_width = std::max(tick_width, text_width(tick.text, style.font));
  }
  const double title_room = 1.5 * style.font;
  const PanelMargins margins{tick_width + 6, 0.9 * style.font, (titles ? 1.5 : 0.4) * style.font,
                             5 + 1.2 * style.font};
  const double left = edge + title_room;
  const std::size_t rows = panel_rows(chart.panels.size(), right - left, style);
  const double feet = x_title_height(style);
  double height = std::clamp(
      0.5 * (right - left) /
          std::ceil(static_cast<double>(chart.panels.size()) / static_cast<double>(rows)),
      11 * style.font, 24 * style.font);
  if (style.height > 0)
    height = std::max(4 * style.font, (style.height - y - feet) / static_cast<double>(rows) -
                                          margins.top - margins.bottom);
  const auto rooms = panel_rooms(chart.panels.size(), left, right, y, height, margins, style);
  for (std::size_t i = 0; i < rooms.size(); ++i)
    draw_panel(svg, chart, chart.panels[i], rooms[i], style);
  y = draw_frame_words(svg, {chart.x_title, chart.y_title, chart.notes}, rooms, margins, y, style);
  return svg.document(width, std::max<double>(style.height, y + edge),
                      chart.title.empty() ? chart.y_title + " over " + chart.x_title : chart.title);
}

}  // namespace pfeife
