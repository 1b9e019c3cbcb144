#include "plots/figure/line_looks.h"

#include <array>
#include <cmath>
#include <numbers>

namespace pfeife::plots {
namespace {

constexpr std::array<Color, 8> kColors{{{0x13, 0x4d, 0xe5},
                                        {0xc9, 0x77, 0x18},
                                        {0x3a, 0xa5, 0x8e},
                                        {0xd0, 0x2a, 0x53},
                                        {0x5a, 0x1b, 0x8d},
                                        {0x5e, 0x34, 0x00},
                                        {0x99, 0x72, 0xb9},
                                        {0x90, 0x1a, 0x67}}};
constexpr std::array<std::string_view, 4> kDashes{"", "6 2.5", "1.6 2", "7 2 1.6 2"};
constexpr std::size_t kMarks = 8;

/// Corners at these angles (degrees, 0 = right, clockwise) and radii, as closed path data.
struct Corner {
  double angle, radius;
};
std::string polygon(double x, double y, double radius, std::initializer_list<Corner> corners) {
  std::string data;
  for (const Corner& corner : corners) {
    const double turn = corner.angle * std::numbers::pi / 180, r = corner.radius * radius;
    data += (data.empty() ? "M" : "L") + coordinate(x + r * std::cos(turn)) + " " +
            coordinate(y + r * std::sin(turn));
  }
  return data + "Z";
}

/// A cross of four arms, turned by so many degrees.
std::string cross(double x, double y, double radius, double turn) {
  constexpr double kLength = 1.28, kElbow = 0.55, kHalfArm = 18;
  std::string data;
  for (int arm = 0; arm < 4; ++arm) {
    const double angle = turn + 90 * arm;
    const std::string part =
        polygon(x, y, radius,
                {{angle - kHalfArm, kLength}, {angle + kHalfArm, kLength}, {angle + 45, kElbow}});
    data += (arm == 0 ? "M" : "L") + part.substr(1, part.size() - 2);
  }
  return data + "Z";
}

std::string star(double x, double y, double radius) {
  std::string data;
  for (int point = 0; point < 5; ++point) {
    const double angle = -90 + 72 * point;
    const std::string part = polygon(x, y, radius, {{angle, 1.5}, {angle + 36, 0.62}});
    data += (point == 0 ? "M" : "L") + part.substr(1, part.size() - 2);
  }
  return data + "Z";
}

/// Four curves of the third degree: off a circle by less than a thousandth of the radius.
std::string circle(double x, double y, double r) {
  const double k = 0.5523 * r;
  const auto at = [&](double dx, double dy) {
    return coordinate(x + dx) + " " + coordinate(y + dy);
  };
  const auto curve = [&](double ax, double ay, double bx, double by, double cx, double cy) {
    return "C" + at(ax, ay) + " " + at(bx, by) + " " + at(cx, cy);
  };
  return "M" + at(r, 0) + curve(r, k, k, r, 0, r) + curve(-k, r, -r, k, -r, 0) +
         curve(-r, -k, -k, -r, 0, -r) + curve(k, -r, r, -k, r, 0) + "Z";
}

/// All of about the same area.
std::string outline(Mark mark, double x, double y, double r) {
  switch (mark) {
    case Mark::Circle:
      return circle(x, y, r);
    case Mark::Square:
      return polygon(x, y, r, {{45, 1.28}, {135, 1.28}, {225, 1.28}, {315, 1.28}});
    case Mark::Up:
      return polygon(x, y + 0.2 * r, r, {{-90, 1.45}, {30, 1.45}, {150, 1.45}});
    case Mark::Diamond:
      return polygon(x, y, r, {{0, 1.15}, {90, 1.5}, {180, 1.15}, {270, 1.5}});
    case Mark::Down:
      return polygon(x, y - 0.2 * r, r, {{90, 1.45}, {210, 1.45}, {330, 1.45}});
    case Mark::Plus:
      return cross(x, y, r, 0);
    case Mark::Star:
      return star(x, y, r);
    case Mark::Cross:
      return cross(x, y, r, 45);
  }
  return "";
}

}  // namespace

LineLook line_look(std::size_t number) {
  const std::size_t color = number % kColors.size(), round = number / kColors.size() % 2;
  return {.color = kColors[color],
          .mark = static_cast<Mark>((color + 3 * round) % kMarks),
          .dash = kDashes[2 * round + color % 2]};
}

LineLook plan_look() { return {.color = kInk, .mark = Mark::Circle, .dash = "", .width = 2.2}; }

void draw_mark(Svg& svg, const LineLook& look, double x, double y, double radius, bool hollow,
               std::string_view hint) {
  const std::string color = hex(look.color);
  const std::string shape = "<path class=\"mark\" d=\"" + outline(look.mark, x, y, radius) +
                            "\" fill=\"" + (hollow ? hex(kPaper) : color) + "\" stroke=\"" + color +
                            "\" stroke-width=\"1\"";
  svg.raw(hint.empty() ? shape + "/>\n" : shape + "><title>" + escape(hint) + "</title></path>\n");
}

std::string stroke_attributes(const LineLook& look) {
  std::string text = " stroke-width=\"" + coordinate(look.width) + "\"";
  if (!look.dash.empty()) text += " stroke-dasharray=\"" + std::string(look.dash) + "\"";
  return text;
}

}  // namespace pfeife::plots
