#include "plots/figure/svg.h"

#include <cmath>

#include "planner/ir/basics/utf8.h"

namespace pfeife::plots {
namespace {

constexpr std::string_view kNamespace = " xmlns=\"http://www.w3.org/2000/svg\"";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// Whether the UTF-8 character is one that XML allows, and that leaves the text around it as it is.
bool is_harmless(std::string_view character) {
  if (character == "\n" || character == "\t") return true;
  const unsigned code = code_point(character);
  const bool noncharacter = (code & 0xFFFE) == 0xFFFE;  // the last two of each plane
  return !noncharacter && !acts_on_text(code);
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0 || !is_harmless(text.substr(0, length)))
      out += kReplacement;
    else if (text[0] == '&')
      out += "&amp;";
    else if (text[0] == '<')
      out += "&lt;";
    else if (text[0] == '>')
      out += "&gt;";
    else if (text[0] == '"')
      out += "&quot;";
    else if (text[0] == '\'')
      out += "&#39;";
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string hundredths(std::int64_t value) {
  std::string text = value < 0 ? "-" : "";
  const std::int64_t size = value < 0 ? -value : value;
  text += std::to_string(size / 100);
  if (size % 100 == 0) return text;
  text += '.';
  text += static_cast<char>('0' + size % 100 / 10);
  if (size % 10 != 0) text += static_cast<char>('0' + size % 10);
  return text;
}

std::string coordinate(double value) { return hundredths(std::llround(value * 100)); }

Svg& Svg::rect(double x, double y, double width, double height, Color fill,
               std::string_view attributes) {
  body_ += "<rect x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" width=\"" +
           coordinate(width) + "\" height=\"" + coordinate(height) + "\" fill=\"" + hex(fill) +
           "\"";
  body_ += attributes;
  body_ += "/>\n";
  return *this;
}

Svg& Svg::line(double x1, double y1, double x2, double y2, Color stroke,
               std::string_view attributes) {
  body_ += "<line x1=\"" + coordinate(x1) + "\" y1=\"" + coordinate(y1) + "\" x2=\"" +
           coordinate(x2) + "\" y2=\"" + coordinate(y2) + "\" stroke=\"" + hex(stroke) + "\"";
  body_ += attributes;
  body_ += "/>\n";
  return *this;
}

Svg& Svg::path(std::string_view data, std::string_view attributes) {
  body_ += "<path d=\"";
  body_ += data;
  body_ += "\"";
  body_ += attributes;
  body_ += "/>\n";
  return *this;
}

Svg& Svg::text(double x, double baseline, std::string_view content, const TextStyle& style) {
  body_ += "<text x=\"" + coordinate(x) + "\" y=\"" + coordinate(baseline) + "\"";
  if (style.size != 11) body_ += " font-size=\"" + coordinate(style.size) + "\"";
  if (style.anchor == Anchor::Middle) body_ += " text-anchor=\"middle\"";
  if (style.anchor == Anchor::End) body_ += " text-anchor=\"end\"";
  if (!(style.color == kInk)) body_ += " fill=\"" + hex(style.color) + "\"";
  if (style.bold) body_ += " font-weight=\"bold\"";
  body_ += ">" + escape(content) + "</text>\n";
  return *this;
}

Svg& Svg::open_group(std::string_view attributes) {
  body_ += "<g";
  body_ += attributes;
  body_ += ">\n";
  return *this;
}

Svg& Svg::close_group() {
  body_ += "</g>\n";
  return *this;
}

Svg& Svg::raw(std::string_view elements) {
  body_ += elements;
  return *this;
}

std::string Svg::document(double width, double height, std::string_view title) const {
  const std::string w = coordinate(std::ceil(width)), h = coordinate(std::ceil(height));
  std::string out = "<svg";
  out += kNamespace;
  out += " width=\"" + w + "\" height=\"" + h + "\" viewBox=\"0 0 " + w + " " + h +
         "\" role=\"img\" font-family=\"" + std::string(kFonts) + "\" font-size=\"11\" fill=\"" +
         hex(kInk) + "\">\n<title>" + escape(title) + "</title>\n";
  out += "<rect width=\"" + w + "\" height=\"" + h + "\" fill=\"" + hex(kPaper) + "\"/>\n";
  return out + body_ + "</svg>\n";
}

std::string inline_svg(std::string_view document) {
  std::string out(document);
  if (const auto at = out.find(kNamespace); at != std::string::npos)
    out.erase(at, kNamespace.size());
  return out;
}

}  // namespace pfeife::plots
