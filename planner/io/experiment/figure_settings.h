// `figures` of an experiment, and the options of `pfeife-exp figure`: what is drawn of results.csv.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/io/files/fields.h"

namespace pfeife {

enum class FigureKind { Lines, Front, Phase };
std::string to_string(FigureKind kind);

struct FigureSettings {
  FigureKind kind = FigureKind::Lines;
  std::string x, y;                ///< names of figures or columns; "" = the kind's usual ones
  std::string lines = "family";    ///< a column whose values are lines
  std::string facet;               ///< a column whose values are panels; "" = one panel
  std::vector<std::string> where;  ///< "devices=8": only rows with that value
  std::string title, name;
  bool column = false, pdf = false, pgf = false, no_title = false;
  std::optional<int> width, height;                   ///< pixels of 1/96 inch
  std::int64_t tokens = 0;                            ///< of a sample; 0 = is not said
  std::map<std::string, SourceLocation> places = {};  ///< of the values, by key

  /// Where the value of the key is said.
  SourceLocation place(const std::string& key) const;
  /// "samples_per_s_over_microbatches", or `name`.
  std::string file_stem() const;
};

const FieldList<FigureSettings>& figure_fields();
/// A map of figure_fields(). Errors: ConfigError.
FigureSettings read_figure(const YamlNode& node);
/// A list of such maps, or a single one.
std::vector<FigureSettings> read_figures(const YamlNode& node);

}  // namespace pfeife
