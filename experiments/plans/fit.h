// A calibration from steps that were measured: the factor of compute times and the overhead of a
// stage execution with which plans take as long as they did.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experiments/inputs/inputs.h"
#include "planner/io/experiment/experiment_config.h"

namespace pfeife {

/// A plan of a case that was measured.
struct MeasuredRow {
  std::string case_name, plan;
  Nanoseconds step{0};
  bool without_optimizer = false;  ///< `step` ends with the last backward
  SourceLocation where;
};

/// Columns: case, plan, and step_ms or without_optimizer_ms. Errors: ConfigError.
std::vector<MeasuredRow> read_measured_rows(const std::filesystem::path& file);

struct Fitted {
  double compute = 1;
  Nanoseconds stage_overhead{0};
  std::vector<Nanoseconds> steps;  ///< [row] with these
};

/// Least squares of relative errors, over what the cases' own calibration leaves open: the factor,
/// and the overhead if there are two rows at least. Plans are made with published figures and stay
/// as they are. Errors: ConfigError if a row names no plan of `cases`, or if the rows cannot tell
/// the two apart.
Fitted fit_calibration(std::span<const CaseConfig> cases, std::span<const MeasuredRow> rows,
                       Inputs& inputs, std::size_t threads);

/// The calibration as a config takes it, and how near each row comes.
std::string to_text(std::span<const MeasuredRow> rows, const Fitted& fitted);

}  // namespace pfeife
