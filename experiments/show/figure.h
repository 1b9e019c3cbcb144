// A figure of a paper from results.csv: what `pfeife-exp figure` and `figures` of a config draw.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/io/experiment/experiment_config.h"
#include "planner/io/experiment/figure_settings.h"
#include "planner/io/files/csv_table.h"
#include "plots/figure/chart.h"

namespace pfeife {

// results.csv as figures of charts have it: rows with figures by name, and values of swept keys.

/// A figure of every row.
struct ShownFigure {
  std::string title;  ///< "samples/s, simulated"
  bool more_is_better = false, is_memory = false;
  std::vector<std::optional<double>> values = {};  ///< [row]; empty = is not known
};

/// A column of every row, as an axis has it.
struct ShownKey {
  std::string title;                    ///< "memory limit, GiB"
  std::vector<double> values = {};      ///< [row]; with words the number of one
  std::vector<std::string> words = {};  ///< in the order of the rows; empty = values are numbers
  std::vector<std::string> texts = {};  ///< [row] "8", "tf32"

  /// "8 devices", "tf32".
  std::string text(std::size_t row) const;
};

class FigureTable {
 public:
  explicit FigureTable(const CsvTable& table);

  std::size_t rows() const { return table_.rows(); }
  const std::string& text(std::size_t row, const std::string& column) const;
  bool planned(std::size_t row) const { return text(row, "plan") == "planned"; }
  bool fits(std::size_t row) const { return text(row, "feasible") == "1"; }
  /// By the engine by which the plans of a case are compared, ms.
  std::optional<double> step(std::size_t row) const;
  std::optional<double> number(std::size_t row, const std::string& column) const;

  /// Errors: ConfigError at the settings' place of `axis` ("y") if there is no such figure.
  ShownFigure figure(const FigureSettings& settings, const std::string& axis) const;
  ShownKey key(const FigureSettings& settings, const std::string& axis) const;
  /// The column that x, y, lines or facet names: also by the end of a swept key's path.
  std::string column_named(const FigureSettings& settings, const std::string& axis) const;
  /// Refuses names of axes, lines and panels that the table does not have, as these do.
  void check_names(const FigureSettings& settings) const;
  /// Columns that say what a case is: devices, microbatches, swept keys.
  std::vector<std::string> case_columns() const;
  /// The lower bound on the class of a row's plan, ms; nothing if there is none.
  std::optional<double> bound(std::size_t row) const;
  /// "bound of 1f1b": the class of those rows' bounds, where all have the same.
  std::string bound_name(std::span<const std::size_t> rows) const;

 private:
  ShownFigure known_figure(const std::string& name, const FigureSettings& settings) const;
  ShownFigure column_figure(const std::string& name) const;
  std::vector<std::optional<double>> each(
      const std::function<std::optional<double>(std::size_t)>& of_row) const;
  std::string engine() const;

  CsvTable table_;
  std::vector<std::string> columns_;
  std::map<std::string, double> steps_of_1f1b_;  ///< ms, by case
};

// Where lines of a chart change places, in words.

/// A line is ahead where it is better by more than a thousandth; points that do not fit into memory
/// do not count. Of lines that are as good the one that was best before leads, else the plan.
struct LineOrder {
  bool more_is_better = true;
  std::string key;  ///< what x counts: "microbatches", "GiB"; "" = nothing is said of it
};

/// "best that fits: zb_h2 up to 16 microbatches, zbv from 24 on"; "" if no point fits.
std::string leaders(const Chart& chart, const ChartPanel& panel, const LineOrder& order);
/// "zbv overtakes interleaved_1f1b between 8 and 16 microbatches", for every two lines, in the
/// order of x.
std::vector<std::string> crossovers(const Chart& chart, const ChartPanel& panel,
                                    const LineOrder& order);

// A figure of a paper from results.csv: what `pfeife-exp figure` and `figures` of a config draw.

struct DrawnFigure {
  std::string svg;
  std::vector<std::string> sentences;  ///< crossovers, and what a point stands for
};

/// Errors: ConfigError, at the settings' places, for names that the table does not have.
DrawnFigure draw_figure(const CsvTable& results, const FigureSettings& settings);

/// Draws it and writes the SVG, and PDF and PGF where they are asked for, each with another ending.
/// Returns the files, then the sentences, for people.
std::string write_figure(const CsvTable& results, const FigureSettings& settings,
                         const std::filesystem::path& svg);

/// Refuses names that the experiment's results.csv will not have, before anything is computed.
void check_figures(const Experiment& experiment);
/// Draws the experiment's figures into the folder of its results.csv; returns what write_figure()
/// does. A figure of which no row has a value says so there.
std::string write_figures(const Experiment& experiment, const std::filesystem::path& out);

}  // namespace pfeife
