// Writing SVG as text: escaping, numbers, the few elements that the plots use.
//
// Only presentation attributes, no style sheet, no ids, no scripts: a drawing looks the same alone,
// in a page beside others, and in a vector editor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/ir/basics/decimals.h"
#include "plots/figure/theme.h"

namespace pfeife::plots {

/// Text for XML or HTML, in element content or a quoted attribute. What XML cannot carry (control
/// characters, broken UTF-8) becomes U+FFFD.
std::string escape(std::string_view text);

/// A number of hundredths, without trailing zeros: 1250 -> "12.5". Independent of the locale.
std::string hundredths(std::int64_t value);
/// A coordinate in pixels, rounded to hundredths: 12.5 -> "12.5".
std::string coordinate(double value);

enum class Anchor { Start, Middle, End };

struct TextStyle {
  double size = 11;  ///< pixels
  Anchor anchor = Anchor::Start;
  Color color = kInk;
  bool bold = false;
};

/// An SVG under construction. Coordinates are pixels, y downwards. `attributes` are written as they
/// are: ` stroke="#123456"`, with a leading blank.
class Svg {
 public:
  Svg& rect(double x, double y, double width, double height, Color fill,
            std::string_view attributes = "");
  Svg& line(double x1, double y1, double x2, double y2, Color stroke,
            std::string_view attributes = "");
  Svg& path(std::string_view data, std::string_view attributes);
  Svg& text(double x, double baseline, std::string_view content, const TextStyle& style = {});
  Svg& open_group(std::string_view attributes);
  Svg& close_group();
  /// Finished elements, as text.
  Svg& raw(std::string_view elements);

  const std::string& body() const { return body_; }
  /// The whole document with a white ground; `title` is what screen readers say.
  std::string document(double width, double height, std::string_view title) const;

 private:
  std::string body_;
};

/// A drawing for use inside HTML: without the namespace, which HTML implies.
std::string inline_svg(std::string_view document);

}  // namespace pfeife::plots
