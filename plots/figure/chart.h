// A chart of lines or points in panels beside one another: figures over a swept key, or time over
// memory.
//
// What it does not do: stacked areas, two value axes, error bars.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plots/figure/chart_frame.h"

namespace pfeife {

struct ChartPoint {
  double x = 0, y = 0;
  bool fits = true;  ///< into memory; else its mark is hollow
  std::string hint;  ///< shown on hovering
};

struct ChartLine {
  std::string name;
  plots::LineLook look;
  std::vector<ChartPoint> points;  ///< from left to right
};

struct ChartPanel {
  std::string title;                  ///< "8 devices"; may be empty
  std::vector<ChartLine> lines = {};  ///< those behind are drawn above those in front
  /// What no plan can be better than; thin, without marks.
  std::vector<ChartPoint> bound = {};
  std::optional<double> limit = {};  ///< of memory, in the unit of its axis
};

struct Chart {
  std::string title = {}, x_title = {}, y_title = {};
  std::vector<std::string> x_words = {};  ///< x is the number of a word; empty = x is a number
  bool memory_is_x = false;               ///< the limit is one of x, which is no swept key then
  bool joined = true;                     ///< points of a line are joined
  std::vector<ChartPanel> panels = {};
  std::string limit_name = {}, bound_name = {};  ///< in the legend
  std::vector<std::string> notes = {};           ///< below, if the style has words
};

/// An SVG document. Every panel has axes of its own.
std::string chart_svg(const Chart& chart, const FigureStyle& style);

}  // namespace pfeife
