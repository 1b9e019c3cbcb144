// A figure of a paper from results.csv: what `pfeife-exp figure` and `figures` of a config draw.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/io/experiment/experiment_config.h"
#include "planner/io/files/csv_table.h"

namespace pfeife {

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
