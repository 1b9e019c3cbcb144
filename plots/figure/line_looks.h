// What lines of charts look like: colour, dash and mark together, so that sixteen are told apart.
//
// Colours differ by at least 20 (CIE76) from one another and from the ink of the plan, in normal,
// deuteranopic, protanopic and tritanopic sight; each has a contrast of at least 3 to the paper.
// Any two looks differ in two of colour, dash and mark, and without their colours in one.
#pragma once

#include <string>
#include <string_view>

#include "plots/figure/svg.h"

namespace pfeife::plots {

enum class Mark { Circle, Square, Up, Diamond, Down, Plus, Star, Cross };

struct LineLook {
  Color color;
  Mark mark = Mark::Circle;
  std::string_view dash = {};  ///< stroke-dasharray; "" = solid
  double width = 1.5;          ///< pixels
  friend bool operator==(const LineLook&, const LineLook&) = default;
};

constexpr std::size_t kLineLooks = 16;
/// Looks repeat after kLineLooks.
LineLook line_look(std::size_t number);
/// The chosen plan's, in every chart: ink, solid and thick.
LineLook plan_look();

/// A mark around (x, y); a hollow one, of the colour of paper inside, is of what does not fit.
void draw_mark(Svg& svg, const LineLook& look, double x, double y, double radius, bool hollow,
               std::string_view hint = "");
/// ` stroke-width="1.5" stroke-dasharray="6 2.5"`, with a leading blank.
std::string stroke_attributes(const LineLook& look);

}  // namespace pfeife::plots
