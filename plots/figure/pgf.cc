#include "plots/figure/pgf.h"

#include <array>
#include <cstdlib>
#include <map>
#include <vector>

#include "plots/figure/svg.h"

namespace pfeife::plots {
namespace {

using Attributes = std::map<std::string, std::string, std::less<>>;

/// A tag of the document, or the text between two.
struct Token {
  std::string_view name;  ///< "rect"; "" = text
  Attributes attributes;
  std::string_view text;
  bool closes = false, is_empty = false;  ///< </g>; <rect/>
};

std::string unescaped(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}}};
  std::string out;
  while (!text.empty()) {
    bool is_entity = false;
    for (const auto& [entity, character] : kEntities)
      if (text.starts_with(entity)) {
        out += character;
        text.remove_prefix(entity.size());
        is_entity = true;
        break;
      }
    if (is_entity) continue;
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

/// Cuts the next token off. The text is what Svg writes, so nothing is checked.
Token take_token(std::string_view& rest) {
  Token token;
  if (rest.front() != '<') {
    const std::size_t end = std::min(rest.find('<'), rest.size());
    token.text = rest.substr(0, end);
    rest.remove_prefix(end);
    return token;
  }
  const std::size_t end = rest.find('>');
  std::string_view tag = rest.substr(1, end - 1);
  rest.remove_prefix(end + 1);
  token.closes = tag.starts_with('/');
  token.is_empty = tag.ends_with('/');
  if (token.closes) tag.remove_prefix(1);
  if (token.is_empty) tag.remove_suffix(1);
  token.name = tag.substr(0, tag.find(' '));
  for (std::size_t at = token.name.size(); (at = tag.find_first_not_of(' ', at)) != tag.npos;) {
    const std::size_t equals = tag.find('=', at), quote = tag.find('"', equals + 2);
    token.attributes[std::string(tag.substr(at, equals - at))] =
        unescaped(tag.substr(equals + 2, quote - equals - 2));
    at = quote + 1;
  }
  return token;
}

double number(std::string_view text) { return std::atof(std::string(text).c_str()); }

std::vector<double> numbers(std::string_view text) {
  std::vector<double> found;
  const std::string copy(text);
  for (const char* at = copy.c_str(); *at != '\0';) {
    char* end = nullptr;
    const double value = std::strtod(at, &end);
    if (end == at) {
      ++at;
      continue;
    }
    found.push_back(value);
    at = end;
  }
  return found;
}

constexpr double kPoints = 0.75;  // of 1/72 inch in a pixel

std::string length(double pixels) { return coordinate(pixels * kPoints) + "bp"; }
/// PGF's y goes upwards.
std::string point(double x, double y) {
  return "\\pgfqpoint{" + length(x) + "}{" + length(-y) + "}";
}

/// Path data as PGF's commands.
std::string path_commands(std::string_view data) {
  std::string out;
  double x = 0, y = 0, begun_x = 0, begun_y = 0;
  while (!data.empty()) {
    const char letter = data.front();
    data.remove_prefix(1);
    const std::size_t end = std::min(data.find_first_of("MmLlHhVvCZz"), data.size());
    const std::vector<double> n = numbers(data.substr(0, end));
    data.remove_prefix(end);
    const auto line = [&](double to_x, double to_y) {
      x = to_x, y = to_y;
      out += "\\pgfpathlineto{" + point(x, y) + "}";
    };
    switch (letter) {
      case 'M':
      case 'm':
        x = n.at(0) + (letter == 'm' ? x : 0);
        y = n.at(1) + (letter == 'm' ? y : 0);
        begun_x = x, begun_y = y;
        out += "\\pgfpathmoveto{" + point(x, y) + "}";
        for (std::size_t i = 2; i + 1 < n.size(); i += 2)
          letter == 'm' ? line(x + n[i], y + n[i + 1]) : line(n[i], n[i + 1]);
        break;
      case 'L':
      case 'l':
        for (std::size_t i = 0; i + 1 < n.size(); i += 2)
          letter == 'l' ? line(x + n[i], y + n[i + 1]) : line(n[i], n[i + 1]);
        break;
      case 'H':
      case 'h':
        for (const double to : n) line(to + (letter == 'h' ? x : 0), y);
        break;
      case 'V':
      case 'v':
        for (const double to : n) line(x, to + (letter == 'v' ? y : 0));
        break;
      case 'C':
        for (std::size_t i = 0; i + 5 < n.size(); i += 6) {
          x = n[i + 4], y = n[i + 5];
          out += "\\pgfpathcurveto{" + point(n[i], n[i + 1]) + "}{" + point(n[i + 2], n[i + 3]) +
                 "}{" + point(x, y) + "}";
        }
        break;
      case 'Z':
      case 'z':
        x = begun_x, y = begun_y;
        out += "\\pgfpathclose";
        break;
      default:
        PFEIFE_CHECK(letter == ' ' || letter == '\n', "path data ", letter);
    }
  }
  return out;
}

std::string latex_text(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kWords{
      {{"\\", "\\textbackslash{}"},
       {"~", "\\textasciitilde{}"},
       {"^", "\\textasciicircum{}"},
       {"<", "\\textless{}"},
       {">", "\\textgreater{}"},
       {"&", "\\&"},
       {"%", "\\%"},
       {"$", "\\$"},
       {"#", "\\#"},
       {"_", "\\_"},
       {"{", "\\{"},
       {"}", "\\}"},
       {"|", "\\textbar{}"},
       {"…", "\\ldots{}"},
       {"–", "--"},
       {"≤", "$\\le$"},
       {"µ", "$\\mu$"},
       {"×", "$\\times$"}}};
  std::string out;
  while (!text.empty()) {
    std::size_t length = 1;
    std::string written(1, text.front());
    for (const auto& [from, to] : kWords)
      if (text.starts_with(from)) length = from.size(), written = to;
    out += written;
    text.remove_prefix(length);
  }
  return out;
}

/// Walks over the document; attributes of groups hold for what is in them.
class PgfWriter {
 public:
  std::string write(std::string_view document) {
    std::string_view rest = document;
    std::vector<std::pair<bool, Attributes>> open;  // of groups and the text: has a scope?
    while (!rest.empty()) {
      const Token token = take_token(rest);
      if (token.name.empty()) {
        if (in_title_ == 0 && in_text_) text(token.text);
      } else if (token.name == "title") {
        in_title_ += token.closes ? -1 : 1;
      } else if (token.closes) {
        if (token.name == "text") in_text_ = false;
        if (open.empty()) continue;  // of a rect with a tooltip
        if (token.name == "g" || token.name == "svg" || token.name == "text") {
          if (open.back().first) out_ += "\\end{pgfscope}\n";
          look_ = open.back().second;
          open.pop_back();
        }
      } else if (token.name == "g" || token.name == "svg" || token.name == "text") {
        const bool turned = token.attributes.contains("transform");
        open.emplace_back(turned, look_);
        inherit(token.attributes);
        if (token.name == "svg") begin(token.attributes);
        if (turned) transform(token.attributes.at("transform"));
        if (token.name == "text") place_ = token.attributes, in_text_ = true;
      } else {
        draw(token);
      }
    }
    return out_ + "\\end{pgfpicture}%\n";
  }

 private:
  void inherit(const Attributes& attributes) {
    for (const auto& [key, value] : attributes) look_[key] = value;
  }

  void begin(const Attributes& attributes) {
    out_ =
        "% a drawing of pfeife, for \\input; needs \\usepackage{pgf}\n\\begin{pgfpicture}%\n"
        "\\pgfpathrectanglecorners{" +
        point(0, 0) + "}{" +
        point(number(attributes.at("width")), number(attributes.at("height"))) +
        "}\\pgfusepath{use as bounding box}\\pgfsetmiterlimit{4}\n";  // SVG's
    for (const char* of_document : {"width", "height"}) look_.erase(of_document);
  }

  void transform(std::string_view text) {
    out_ += "\\begin{pgfscope}";
    const std::vector<double> n = numbers(text);
    if (text.starts_with("translate")) {
      out_ += "\\pgftransformshift{" + point(n.at(0), n.at(1)) + "}\n";
      return;
    }
    PFEIFE_CHECK(text.starts_with("rotate") && n.size() == 3, text);
    out_ += "\\pgftransformshift{" + point(n[1], n[2]) + "}\\pgftransformrotate{" +
            coordinate(-n[0]) + "}\\pgftransformshift{" + point(-n[1], -n[2]) + "}\n";
  }

  std::string look(const Attributes& own, std::string_view key, const char* otherwise) const {
    if (const auto found = own.find(key); found != own.end()) return found->second;
    const auto found = look_.find(key);
    return found == look_.end() ? otherwise : found->second;
  }

  /// "#134de5" as the colour of a name.
  static std::string color(const std::string& name, const std::string& hex) {
    std::string channels;
    for (std::size_t at = 1; at + 1 < hex.size(); at += 2)
      channels += (at == 1 ? "" : ",") +
                  std::to_string(std::strtol(hex.substr(at, 2).c_str(), nullptr, 16));
    return "\\definecolor{" + name + "}{RGB}{" + channels + "}";
  }

  void draw(const Token& token) {
    const Attributes& own = token.attributes;
    const auto at = [&](const char* key) {
      const auto found = own.find(key);
      return found == own.end() ? 0.0 : number(found->second);
    };
    std::string path;
    if (token.name == "rect")
      path = "\\pgfpathrectanglecorners{" + point(at("x"), at("y")) + "}{" +
             point(at("x") + at("width"), at("y") + at("height")) + "}";
    else if (token.name == "line")
      path = "\\pgfpathmoveto{" + point(at("x1"), at("y1")) + "}\\pgfpathlineto{" +
             point(at("x2"), at("y2")) + "}";
    else if (token.name == "path")
      path = path_commands(own.at("d"));
    PFEIFE_CHECK(!path.empty() || token.name == "path", token.name);
    const std::string fill = token.name == "line" ? "none" : look(own, "fill", "#000000");
    const std::string stroke = look(own, "stroke", "none");
    std::string use;
    if (fill != "none") {
      out_ += color("pfeifefill", fill) + "\\pgfsetfillcolor{pfeifefill}";
      out_ += "\\pgfsetfillopacity{" + look(own, "fill-opacity", "1") + "}";
      use = "fill";
    }
    if (stroke != "none") {
      std::string dash;
      for (const double part : numbers(look(own, "stroke-dasharray", "")))
        dash += "{" + length(part) + "}";
      const bool round = look(own, "stroke-linejoin", "miter") == "round";
      out_ += color("pfeifestroke", stroke) + "\\pgfsetstrokecolor{pfeifestroke}" +
              (round ? "\\pgfsetroundjoin" : "\\pgfsetmiterjoin") + "\\pgfsetlinewidth{" +
              length(number(look(own, "stroke-width", "1"))) + "}\\pgfsetdash{" + dash + "}{0bp}";
      use += use.empty() ? "stroke" : ",stroke";
    }
    if (!use.empty() && !path.empty()) out_ += path + "\\pgfusepath{" + use + "}\n";
  }

  void text(std::string_view content) {
    const std::string anchor = look({}, "text-anchor", "start");
    const std::string size = length(number(look({}, "font-size", "11")));
    std::string written = latex_text(unescaped(content));
    if (look({}, "font-weight", "") == "bold") written = "\\bfseries " + written;
    out_ += color("pfeifetext", look({}, "fill", "#000000")) +
            "\\pgfsetfillopacity{1}\\pgftext[base" +
            (anchor == "start" ? ",left"
             : anchor == "end" ? ",right"
                               : "") +
            ",x=" + length(number(place_.at("x"))) + ",y=" + length(-number(place_.at("y"))) +
            "]{\\sffamily\\fontsize{" + size + "}{" + size + "}\\selectfont\\color{pfeifetext}" +
            written + "}\n";
  }

  std::string out_;
  Attributes look_, place_;
  int in_title_ = 0;
  bool in_text_ = false;
};

}  // namespace

std::string pgf_of(std::string_view svg_document) { return PgfWriter().write(svg_document); }

}  // namespace pfeife::plots
