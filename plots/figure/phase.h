// A phase diagram: which of several ways wins where, over two keys, a cell each.
#pragma once

#include <string>
#include <vector>

#include "plots/figure/chart_frame.h"

namespace pfeife {

struct PhaseCell {
  std::string winner;  ///< "" = nothing is there
  plots::LineLook look;
  std::string text, hint;  ///< in the cell if it has room; shown on hovering
};
struct PhasePanel {
  std::string title;
  std::vector<PhaseCell> cells;  ///< [y * columns + x], y upwards
};
struct PhaseDiagram {
  std::string title, x_title, y_title;
  std::vector<std::string> x_words = {}, y_words = {};
  std::vector<PhasePanel> panels = {};
  std::vector<std::string> notes = {};
  std::string text_note = {};  ///< what the texts of the cells are, where one has room
};

/// An SVG document: a cell has the winner's colour, pale, and its mark.
std::string phase_svg(const PhaseDiagram& diagram, const FigureStyle& style);

}  // namespace pfeife
