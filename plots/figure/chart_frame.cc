#include "plots/figure/chart_frame.h"

#include <algorithm>
#include <cmath>

namespace pfeife {

FigureStyle column_style() {
  constexpr double kInch = 96, kPoint = kInch / 72;
  return {.width = static_cast<int>(std::lround(3.3 * kInch)), .font = 7 * kPoint, .words = false};
}

namespace plots {
namespace {

/// Panels in a row: each at least as wide as fifteen letters are high.
std::size_t panels_in_row(std::size_t count, double width, const FigureStyle& style) {
  const auto most = static_cast<std::size_t>(std::max(1.0, width / (15 * style.font)));
  const std::size_t rows = (count + most - 1) / most;
  return (count + rows - 1) / rows;
}

}  // namespace

double swatch_width(const FigureStyle& style) { return 2.2 * style.font; }

LegendItem line_item(const std::string& name, const LineLook& look, const FigureStyle& style) {
  const double width = swatch_width(style);
  Svg svg;
  svg.line(0, 0, width, 0, look.color, stroke_attributes(look));
  draw_mark(svg, look, width / 2, 0, 0.3 * style.font, false);
  return {name, svg.body()};
}

double draw_chart_legend(Svg& svg, std::span<const LegendItem> items, double left, double right,
                         double top, const FigureStyle& style) {
  const double gap = 0.4 * style.font, between = 0.9 * style.font, line = 1.35 * style.font;
  const double swatch = swatch_width(style) + gap;
  double x = left, y = top;
  for (const LegendItem& item : items) {
    const std::string name = shortened(item.name, style.font, right - left - swatch);
    const double width = swatch + 0.92 * text_width(name, style.font);  // it is one from above
    if (x > left && x + width > right) x = left, y += line;
    svg.open_group(" transform=\"translate(" + coordinate(x) + " " + coordinate(y + line / 2) +
                   ")\"")
        .raw(item.drawing)
        .text(swatch, 0.36 * style.font, name, {.size = style.font})
        .close_group();
    x += width + between;
  }
  return items.empty() ? top : y + line;
}

std::size_t panel_rows(std::size_t count, double width, const FigureStyle& style) {
  const std::size_t across = panels_in_row(count, width, style);
  return (count + across - 1) / across;
}

std::vector<PanelRoom> panel_rooms(std::size_t count, double left, double right, double top,
                                   double height, const PanelMargins& margins,
                                   const FigureStyle& style) {
  const std::size_t across = panels_in_row(count, right - left, style);
  const double slot = (right - left) / static_cast<double>(across);
  std::vector<PanelRoom> rooms;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = left + static_cast<double>(i % across) * slot;
    const double y =
        top + static_cast<double>(i / across) * (margins.top + height + margins.bottom);
    rooms.push_back(
        {x + margins.left, x + slot - margins.right, y + margins.top, y + margins.top + height});
  }
  return rooms;
}

static double draw_notes(Svg& svg, std::span<const std::string> notes, double left, double right,
                         double top, const FigureStyle& style) {
  const double line = 1.35 * style.font;
  double y = top;
  const auto write = [&](const std::string& text) {
    svg.text(left, y += line, text, {.size = style.font, .color = kMuted});
  };
  for (const std::string& note : notes) {
    std::string text;
    for (std::size_t begin = 0; begin < note.size();) {
      const std::size_t end = std::min(note.find(' ', begin), note.size());
      const std::string word = note.substr(begin, end - begin);
      if (!text.empty() && text_width(text + " " + word, style.font) > right - left) {
        write(text);
        text.clear();
      }
      text += (text.empty() ? "" : " ") + word;
      begin = end + 1;
    }
    write(text);
  }
  return y;
}

double frame_edge(const FigureStyle& style) { return 0.35 * style.font; }

double x_title_height(const FigureStyle& style) { return 1.7 * style.font; }

double draw_frame_title(Svg& svg, const std::string& title, const FigureStyle& style) {
  const double edge = frame_edge(style);
  if (!style.words || title.empty()) return edge;
  svg.text(edge, edge + 1.2 * style.font, title, {.size = 1.15 * style.font, .bold = true});
  return edge + 2 * style.font;
}

double draw_frame_words(Svg& svg, const FrameWords& words, std::span<const PanelRoom> rooms,
                        const PanelMargins& margins, double top, const FigureStyle& style) {
  const double edge = frame_edge(style), right = style.width - edge;
  double bottom = top, panels_left = edge;
  if (!rooms.empty()) {
    panels_left = rooms.front().left;
    bottom = rooms.back().bottom + margins.bottom;
    const double baseline = edge + style.font;
    const double middle = (rooms.front().top + rooms.back().bottom) / 2;
    svg.open_group(" transform=\"rotate(-90 " + coordinate(baseline) + " " + coordinate(middle) +
                   ")\"")
        .text(baseline, middle, words.y_title, {.size = style.font, .anchor = Anchor::Middle})
        .close_group();
  }
  svg.text((panels_left + right) / 2, bottom + style.font, words.x_title,
           {.size = style.font, .anchor = Anchor::Middle});
  const double end = bottom + x_title_height(style);
  return style.words ? draw_notes(svg, words.notes, edge, right, end, style) : end;
}

void draw_limit(Svg& svg, double x1, double y1, double x2, double y2) {
  svg.line(x1, y1, x2, y2, kEdge, " class=\"halo\" stroke-width=\"3.6\"")
      .line(x1, y1, x2, y2, kAlarm,
            " class=\"limit\" stroke-width=\"1.4\" stroke-dasharray=\"5 2\"");
}

}  // namespace plots
}  // namespace pfeife
