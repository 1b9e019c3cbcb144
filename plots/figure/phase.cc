#include "plots/figure/phase.h"

#include <algorithm>

namespace pfeife {
namespace {

using namespace plots;

constexpr double kPale = 0.62;  ///< share of paper in a cell's ground

/// Returns whether a cell had room for its text.
bool draw_phase_panel(Svg& svg, const PhaseDiagram& diagram, const PhasePanel& panel,
                      const PanelRoom& room, const FigureStyle& style) {
  const double wide = (room.right - room.left) / static_cast<double>(diagram.x_words.size());
  const double high = (room.bottom - room.top) / static_cast<double>(diagram.y_words.size());
  const double radius = std::min(0.3 * style.font, 0.2 * high);
  bool has_texts = false;
  for (std::size_t y = 0; y < diagram.y_words.size(); ++y) {
    const double bottom = room.bottom - static_cast<double>(y) * high;
    svg.text(room.left - 5, bottom - high / 2 + 0.36 * style.font, diagram.y_words[y],
             {.size = style.font, .anchor = Anchor::End});
    for (std::size_t x = 0; x < diagram.x_words.size(); ++x) {
      const PhaseCell& cell = panel.cells[y * diagram.x_words.size() + x];
      const double left = room.left + static_cast<double>(x) * wide;
      const bool empty = cell.winner.empty();
      const Color ground = empty ? kIdle : mix(cell.look.color, kPaper, kPale);
      svg.raw("<rect class=\"cell\" x=\"" + coordinate(left) + "\" y=\"" +
              coordinate(bottom - high) + "\" width=\"" + coordinate(wide) + "\" height=\"" +
              coordinate(high) + "\" fill=\"" + hex(ground) + "\" stroke=\"" + hex(kEdge) +
              "\" stroke-width=\"1\"><title>" + escape(empty ? "nothing fits" : cell.hint) +
              "</title></rect>\n");
      if (empty) continue;
      const bool text_fits = text_width(cell.text, style.font) + 4 * radius + 6 <= wide &&
                             high >= 1.2 * style.font && !cell.text.empty();
      has_texts = has_texts || text_fits;
      const double middle = bottom - high / 2;
      const double text_room = text_fits ? text_width(cell.text, style.font) * 0.9 + 4 : 0;
      draw_mark(svg, cell.look, left + (wide - text_room) / 2 - (text_fits ? radius : 0), middle,
                radius, false);
      if (text_fits)
        svg.text(left + (wide - text_room) / 2 + radius + 2, middle + 0.36 * style.font, cell.text,
                 {.size = style.font});
    }
  }
  for (std::size_t x = 0; x < diagram.x_words.size(); ++x)
    svg.text(room.left + (static_cast<double>(x) + 0.5) * wide, room.bottom + 3 + style.font,
             shortened(diagram.x_words[x], style.font, wide - 2),
             {.size = style.font, .anchor = Anchor::Middle});
  svg.text((room.left + room.right) / 2, room.top - 0.5 * style.font, panel.title,
           {.size = style.font, .anchor = Anchor::Middle});
  return has_texts;
}

}  // namespace

std::string phase_svg(const PhaseDiagram& diagram, const FigureStyle& style) {
  const double edge = frame_edge(style), right = style.width - edge;
  Svg svg;
  double y = draw_frame_title(svg, diagram.title, style);
  std::vector<LegendItem> items;
  bool titles = false, empty = false;
  for (const PhasePanel& panel : diagram.panels) {
    titles = titles || !panel.title.empty();
    for (const PhaseCell& cell : panel.cells) {
      empty = empty || cell.winner.empty();
      if (!cell.winner.empty() &&
          std::ranges::find(items, cell.winner, &LegendItem::name) == items.end()) {
        Svg swatch;
        const double width = swatch_width(style), half = 0.55 * style.font;
        swatch.rect(0, -half, width, 2 * half, mix(cell.look.color, kPaper, kPale));
        draw_mark(swatch, cell.look, width / 2, 0, 0.3 * style.font, false);
        items.push_back({cell.winner, swatch.body()});
      }
    }
  }
  if (empty) {
    Svg swatch;
    swatch.rect(0, -0.55 * style.font, swatch_width(style), 1.1 * style.font, kIdle);
    items.push_back({"nothing fits", swatch.body()});
  }
  y = draw_chart_legend(svg, items, edge, right, y, style) + 0.5 * style.font;
  double labels = 0;
  for (const std::string& word : diagram.y_words)
    labels = std::max(labels, text_width(word, style.font));
  const PanelMargins margins{labels + 6, 0.6 * style.font, (titles ? 1.5 : 0.4) * style.font,
                             5 + 1.2 * style.font};
  const double left = edge + 1.5 * style.font, feet = x_title_height(style);
  const auto rows = static_cast<double>(panel_rows(diagram.panels.size(), right - left, style));
  double height = 2.4 * style.font * static_cast<double>(diagram.y_words.size());
  if (style.height > 0)
    height = std::max(2 * style.font, (style.height - y - feet) / std::max(1.0, rows) -
                                          margins.top - margins.bottom);
  const auto rooms = panel_rooms(diagram.panels.size(), left, right, y, height, margins, style);
  bool has_texts = false;
  for (std::size_t i = 0; i < rooms.size(); ++i)
    has_texts = draw_phase_panel(svg, diagram, diagram.panels[i], rooms[i], style) || has_texts;
  std::vector<std::string> notes = diagram.notes;
  if (has_texts && !diagram.text_note.empty()) notes.push_back(diagram.text_note);
  y = draw_frame_words(svg, {diagram.x_title, diagram.y_title, notes}, rooms, margins, y, style);
  return svg.document(style.width, std::max<double>(style.height, y + edge),
                      diagram.title.empty()
                          ? "the fastest over " + diagram.x_title + " and " + diagram.y_title
                          : diagram.title);
}

}  // namespace pfeife
