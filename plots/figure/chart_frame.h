// What charts have in common: their size, panels beside one another, a legend, words below.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plots/figure/line_looks.h"

namespace pfeife {

/// How large a figure is and what stands around it.
struct FigureStyle {
  int width = 900;    ///< pixels of 1/96 inch
  int height = 0;     ///< pixels; 0 = as the width suggests
  double font = 12;   ///< pixels, of all letters
  bool words = true;  ///< title and notes, which a caption replaces
};
/// For a column of a paper: 3.3 inches, letters of 7 points, no title, no notes.
FigureStyle column_style();

namespace plots {

struct LegendItem {
  std::string name;
  std::string drawing;  ///< from x = 0 to swatch_width(), around y = 0
};
double swatch_width(const FigureStyle& style);
LegendItem line_item(const std::string& name, const LineLook& look, const FigureStyle& style);

/// Draws the items one after another within [left, right] from `top` on; returns where they end.
double draw_chart_legend(Svg& svg, std::span<const LegendItem> entries, double left, double right,
                         double top, const FigureStyle& style);

/// Room for what is drawn of a panel, axes and titles outside.
struct PanelRoom {
  double left = 0, right = 0, top = 0, bottom = 0;
};
/// What stands around every panel, in pixels.
struct PanelMargins {
  double left = 0, right = 0, top = 0, bottom = 0;
};
/// Rooms for `count` panels in rows within [left, right], from `top` on, each `height` high inside.
std::vector<PanelRoom> panel_rooms(std::size_t count, double left, double right, double top,
                                   double height, const PanelMargins& margins,
                                   const FigureStyle& style);
/// Rows that panel_rooms() makes.
std::size_t panel_rows(std::size_t count, double width, const FigureStyle& style);

/// What stands beside the panels of a figure.
struct FrameWords {
  const std::string &x_title, &y_title;
  std::span<const std::string> notes;
};
/// Paper around a figure, in pixels.
double frame_edge(const FigureStyle& style);
/// Pixels that the title of x takes below the panels.
double x_title_height(const FigureStyle& style);
/// The title over a figure, where there are words; returns where it ends.
double draw_frame_title(Svg& svg, const std::string& title, const FigureStyle& style);
/// The titles of the axes around panels in `rooms`, and the notes below; returns where the figure
/// ends. `top`: where it ends without panels.
double draw_frame_words(Svg& svg, const FrameWords& words, std::span<const PanelRoom> rooms,
                        const PanelMargins& margins, double top, const FigureStyle& style);

/// A line at a memory limit: a halo of paper below, so that it is seen on any ground.
void draw_limit(Svg& svg, double x1, double y1, double x2, double y2);

}  // namespace plots
}  // namespace pfeife
