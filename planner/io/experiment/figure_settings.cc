#include "planner/io/experiment/figure_settings.h"

#include <algorithm>
#include <cctype>

#include "planner/io/files/quantity.h"

namespace pfeife {
namespace {

/// A length from `least` to 200 inches.
Kind<int> length(const char* values, int least) {
  return {values,
          [least](const YamlNode& node) {
            const ParsedQuantity<double> length = parse_length(node.as_string());
            if (!length.value) node.fail(length.error);
            if (*length.value < least || *length.value > 19'200)
              node.fail("expected a length from " + std::to_string(least) + "px to 200in, found " +
                        node.as_string());
            return static_cast<int>(*length.value + 0.5);
          },
          [](int pixels) { return yaml_scalar(std::to_string(pixels) + "px"); },
          false,
          {},
          pattern_schema(pattern_of(Dimension::Length))};
}

std::string read_stem(const YamlNode& node) {
  const std::string name = node.as_string();
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '+' || c == '.' || c == '=';
  };
  if (name.empty() || name.size() > 100 || name.front() == '.' || !std::ranges::all_of(name, plain))
    node.fail("\"" + name +
              "\" names a file: use up to 100 letters, digits and \"_-+.=\", no dot "
              "at the start");
  return name;
}

}  // namespace

std::string to_string(FigureKind kind) {
  return kind == FigureKind::Lines ? "lines" : kind == FigureKind::Front ? "front" : "phase";
}

SourceLocation FigureSettings::place(const std::string& key) const {
  const auto found = places.find(key);
  return found == places.end() ? SourceLocation{} : found->second;
}

std::string FigureSettings::file_stem() const {
  if (!name.empty()) return name;
  std::string stem = (kind == FigureKind::Phase ? "phase_of_" : "") + y + "_over_" + x;
  for (char& c : stem)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
  return stem;
}

const FieldList<FigureSettings>& figure_fields() {
  using Figure = FigureSettings;
  const auto text = [](const char* values) {
    return Kind<std::string>{values,
                             [](const YamlNode& node) { return node.as_string(); },
                             free_text().value,
                             false,
                             {},
                             kTextSchema};
  };
  static const FieldList<FigureSettings> fields = {
      field("kind", &Figure::kind,
            word(words_of<FigureKind>({FigureKind::Lines, FigureKind::Front, FigureKind::Phase})),
            "`lines`: y over x; `front`: every plan, and the front that no plan beats in both; "
            "`phase`: which family is the fastest that fits, over two keys"),
      field("x", &Figure::x, text("a name"), "what lies to the right")
          .by_default("of a front `memory`, else required"),
      field("y", &Figure::y, text("a name"), "what goes up")
          .by_default("of a front `step`, else required"),
      field("lines", &Figure::lines, text("a name"),
            "whose values are lines. `family`, `plan`: the chosen plan beside its baselines; "
            "others: the chosen plans alone"),
      field("facet", &Figure::facet, text("a name"), "whose values are panels").by_default("none"),
      field("where", &Figure::where, list_of(text("`name=value`")), "only rows with these values")
          .by_default("all"),
      field("column", &Figure::column, flag(),
            "for a column of a paper: 3.3 in wide, letters of 7 pt, no title, no words below"),
      field("width", &Figure::width, length("a length, `3.3in`", 200), "of the figure")
          .by_default("`900px`"),
      field("height", &Figure::height, length("a length, `1.5in`", 80), "of the figure")
          .by_default("as the width suggests"),
      field("title", &Figure::title, free_text(), "above it").by_default("none"),
      field("no_title", &Figure::no_title, flag(), "no words above and below"),
      field("tokens", &Figure::tokens, whole<std::int64_t>(1, 1'000'000'000),
            "of a sample, for `tokens_per_s`")
          .by_default("none"),
      field("name", &Figure::name, Kind<std::string>{"a word", read_stem, free_text().value},
            "of the files")
          .by_default("`Y_over_X`"),
      field("pdf", &Figure::pdf, flag(),
            "a PDF, too, by what is installed (rsvg-convert, inkscape, "
            "cairosvg or chromium)"),
      field("pgf", &Figure::pgf, flag(), "a PGF picture, too, for \\input in LaTeX")};
  return fields;
}

FigureSettings read_figure(const YamlNode& node) {
  FigureSettings figure;
  figure_fields().read(node, figure);
  for (const auto& [key, value] : node.entries()) figure.places[key] = value.where();
  if (figure.kind == FigureKind::Front) {
    if (figure.x.empty()) figure.x = "memory";
    if (figure.y.empty()) figure.y = "step";
  }
  for (const char* key : {"x", "y"})
    if ((key[0] == 'x' ? figure.x : figure.y).empty())
      node.fail(std::string("which ") + key + "? A figure of " + to_string(figure.kind) +
                " needs x and y, for example {x: microbatches, y: samples_per_s}");
  if (figure.kind == FigureKind::Phase && node.find("lines"))
    node.fail_at_key("lines", "a phase diagram shows families; leave `lines` out");
  return figure;
}

std::vector<FigureSettings> read_figures(const YamlNode& node) {
  std::vector<FigureSettings> figures;
  for (const YamlNode& item : node.items_or_self()) {
    figures.push_back(read_figure(item));
    for (std::size_t i = 0; i + 1 < figures.size(); ++i)
      if (figures[i].file_stem() == figures.back().file_stem())
        item.fail("two figures would be called " + figures.back().file_stem() +
                  "; give one a `name`");
  }
  return figures;
}

}  // namespace pfeife
